"""GGUF metadata, as llama.cpp reads it, to a model's shape (start at reader.py)."""
