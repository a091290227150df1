"""Models on disk: config.json and GGUF files, read as far as their shape needs (start at found.py)."""
