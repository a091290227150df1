"""KV cache arithmetic: from attention layers to bytes per token, per sequence and per block (see README.md)."""
