"""Errors in Ollama's dialect."""

from __future__ import annotations

import msgspec

from gateway.errors import GatewayError

__all__ = ["error_body", "error_line"]


def error_body(err: GatewayError) -> bytes:
    """`{"error": "text"}`, with the code beside it, which Ollama's clients skip."""
    return msgspec.json.encode({"error": err.message, "code": err.code})


def error_line(err: GatewayError) -> bytes:
    """The same as one line of a stream; no line with `"done": true` may follow it."""
    return error_body(err) + b"\n"
