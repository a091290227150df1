"""What all watchers of an engine's own stream share, whatever its dialect: what can't be read, and errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from gateway.errors import GatewayError
from gateway.wire.engine_json import UNREADABLE, is_utf8, json_of
from gateway.wire.error_body import error_in
from gateway.wire.sse import fields
from gateway.wire.stream_view import EventKind, Seen

__all__ = ["UNREAD", "NativeStream", "error_told", "payload_of", "without_data"]

_NOT_JSON: dict[str, Any] = {
    "message": "the engine sent an event that is not JSON",
    "type": "upstream_error",
    "code": 502,
}
UNREAD = Seen(b"", EventKind.ERROR, _NOT_JSON)
"""What an event is that clients can't read: no JSON, or no UTF-8. SDKs raise on it."""


class NativeStream(ABC):
    """A stream that passes through as it came: the base of a StreamView, which adds `usage` and `terminal`."""

    __slots__ = ("done", "finish_reason", "tokens_seen")

    def __init__(self) -> None:
        self.tokens_seen = 0
        self.finish_reason: str | None = None
        self.done = False

    def see(self, event: bytes) -> Seen:
        """Look at one whole event. What clients can't read (no JSON, no UTF-8) is an ERROR."""
        return UNREAD if not event.isascii() and not is_utf8(event) else self._see(event)

    def unfinished(self, tail: bytes) -> dict[str, Any] | None:
        """The error that the body's end tells although its event is not complete; None when it is only a cut."""
        seen = self._look(tail)
        return None if seen is UNREAD else seen.error

    def closing(self) -> bytes:
        """Nothing: what the engine sent was passed on as it came."""
        return b""

    def failure(self, error: GatewayError) -> bytes | None:
        """None: most dialects' events stand each for itself."""
        del error
        return None

    def _token(self, event: bytes) -> Seen:
        self.tokens_seen += 1
        return Seen(event, EventKind.TOKEN, None, True)

    @abstractmethod
    def _see(self, event: bytes) -> Seen:
        """Look at an event that is UTF-8, the quick way where there is one."""

    @abstractmethod
    def _look(self, event: bytes) -> Seen:
        """Look at an event in full."""


def error_told(event: bytes, payload: object) -> dict[str, Any] | None:
    """The error that an event's payload is, flat: as `error_in` knows it, or whatever stands under `event: error`."""
    error = error_in(payload)
    if error is None and fields(event, b"event") == [b"error"]:
        return {"message": "", **payload} if isinstance(payload, dict) else {"message": str(payload)}
    return error


def payload_of(
    event: bytes, data: bytes, error_of: Callable[[bytes, object], dict[str, Any] | None] = error_told
) -> dict[str, Any] | Seen:
    """What the data of an event says; where that is no object, or an error, what the event is seen as."""
    payload = json_of(data)
    if payload is UNREADABLE:
        return UNREAD
    error = error_of(event, payload)
    if error is not None:
        return Seen(b"", EventKind.ERROR, error)
    return payload if isinstance(payload, dict) else Seen(event, EventKind.OTHER)


def without_data(event: bytes) -> Seen:
    """What an event without data is seen as: a comment, or an error.

    llama.cpp builds through 2025 wrote `error: {...}`; some proxies put a bare JSON body into an event stream.
    """
    for text in fields(event, b"error"):
        payload = json_of(text)
        told = payload if isinstance(payload, dict) else {"message": text.decode("utf-8", "replace")}
        return Seen(b"", EventKind.ERROR, error_in(told) or told)
    bare = event.strip()
    if not bare.startswith(b"{"):
        return Seen(event, EventKind.COMMENT)
    error = error_in(json_of(bare))
    return Seen(event, EventKind.OTHER) if error is None else Seen(b"", EventKind.ERROR, error)
