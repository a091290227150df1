"""Formats, sans I/O: bytes in, values and bytes out (see README.md)."""
