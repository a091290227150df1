"""Errors in the dialect of OpenAI's responses."""

from __future__ import annotations

import msgspec

from gateway.errors import GatewayError

__all__ = ["error_event"]


def error_event(err: GatewayError) -> bytes:
    """One server-sent event after which no `response.completed` may come."""
    error = {"message": err.message, "type": err.type, "param": err.param, "code": err.code}
    event = {"type": "error", "code": err.code, "message": err.message, "param": err.param, "error": error}
    return b"event: error\ndata: " + msgspec.json.encode(event) + b"\n\n"
