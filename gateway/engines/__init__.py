"""Engine adapters, sans I/O, one file an engine: what to ask, what its answers mean, what must be changed for it."""
