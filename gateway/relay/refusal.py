"""An engine's own "no" inside an answer that began with 200."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import BadStatus
from gateway.wire.error_body import upstream_error

__all__ = ["in_stream", "not_an_answer", "status_of"]


_LONGEST = 256 * 1024
"""Bytes; no error is longer."""
_STATUSES = {
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Of an error that names no status: Anthropic's types."""


def status_of(error: dict[str, Any]) -> int:
    """The HTTP status that an engine's error object stands for: its numeric `code`, else 400 or 500 by its `type`.

    vLLM and llama.cpp put the status they would have answered with into `code`.
    """
    for name in ("code", "status"):
        value = error.get(name)
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    kind = error.get("type")
    if isinstance(kind, str) and kind in _STATUSES:
        return _STATUSES[kind]
    return 400 if "request" in str(error.get("type", "")).lower() else 500


def in_stream(error: dict[str, Any]) -> BadStatus:
    """An error event as the error answer it should have been; the engine's words are in `payload` only."""
    payload = msgspec.json.encode({"error": error})
    return BadStatus("the engine reported an error in its stream", status=status_of(error), payload=payload)


def not_an_answer(body: bytes) -> BadStatus:
    """What came with status 200 in place of an answer: the error that it names, else a 502."""
    error = upstream_error(0, body) if len(body) <= _LONGEST else None
    if error is not None:
        return in_stream(error)
    return BadStatus("the engine answered with something that is no answer", status=502)
