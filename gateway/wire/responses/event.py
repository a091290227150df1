"""The error that an event of an engine's own stream of a response tells."""

from __future__ import annotations

from typing import Any

from gateway.wire.native_stream import error_told

__all__ = ["error_of"]


def error_of(event: bytes, payload: object) -> dict[str, Any] | None:
    """The error, flat: `error` and `response.failed` events, and all that chat's streams know; else None."""
    if isinstance(payload, dict) and payload.get("type") == "response.failed":
        response = payload.get("response")
        error = response.get("error") if isinstance(response, dict) else None
        told = error if isinstance(error, dict) else {}
        return {**told, "message": str(told.get("message") or "the engine says that the response failed")}
    return error_told(event, payload)
