"""Read one event of an engine's own stream of a response."""

from __future__ import annotations

from typing import Any

from gateway.wire.error_body import error_in
from gateway.wire.responses.decoding import json_of
from gateway.wire.sse import fields

__all__ = ["NOT_JSON", "error_of", "is_utf8", "loose_error"]

NOT_JSON: dict[str, Any] = {
    "message": "the engine sent an event that is not JSON",
    "type": "upstream_error",
    "code": 502,
}


def error_of(event: bytes, payload: object) -> dict[str, Any] | None:
    """The error that an event tells, flat: `error` and `response.failed` events, and all that chat's streams know."""
    if isinstance(payload, dict) and payload.get("type") == "response.failed":
        response = payload.get("response")
        error = response.get("error") if isinstance(response, dict) else None
        told = error if isinstance(error, dict) else {}
        return {**told, "message": str(told.get("message") or "the engine says that the response failed")}
    error = error_in(payload)
    if error is None and fields(event, b"event") == [b"error"]:
        error = {"message": "", **payload} if isinstance(payload, dict) else {"message": str(payload)}
    return error


def loose_error(event: bytes) -> dict[str, Any] | None:
    """The error in an event without data: an `error:` line, or a bare JSON body; None for a comment."""
    for text in fields(event, b"error"):
        payload = json_of(text)
        told = payload if isinstance(payload, dict) else {"message": text.decode("utf-8", "replace")}
        return error_in(told) or told
    bare = event.strip()
    return error_in(json_of(bare)) if bare.startswith(b"{") else None


def is_utf8(event: bytes) -> bool:
    """Whether clients can read it as text."""
    try:
        event.decode()
    except UnicodeDecodeError:
        return False
    return True
