"""Anthropic's messages: read, translated to chat completions and from them, errors in its dialect. See README.md."""
