"""Recorded decisions, made again: by the same policy, to see that they are the same, or by another one."""
