"""Ollama's own API: read, translated to chat completions and from them, errors in its dialect."""
