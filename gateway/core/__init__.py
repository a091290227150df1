"""The decision: pure values in, pure values out. No I/O, no clock, no chance (see README.md)."""
