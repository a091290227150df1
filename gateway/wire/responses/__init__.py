"""OpenAI's responses: read, translated to chat completions and from them, errors in its dialect."""
