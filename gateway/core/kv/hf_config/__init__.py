"""Hugging Face config.json files: keys of every family to a model's shape (start at reader.py)."""
