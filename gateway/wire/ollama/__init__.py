"""Ollama's own API: read, watched, translated to chat completions and from them.

Read: ollama/ollama, docs/api.md, api/types.go (late 2025), server/routes.go (mid-2026) and openai/openai.go (its own
chat completions); requests of ollama-python 0.6. Nothing of it was seen running.
"""
