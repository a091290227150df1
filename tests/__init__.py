"""Tests, one folder a layer; `python -m tests` runs everything."""
