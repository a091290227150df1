"""The status line and header fields of an answer, as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from email.utils import formatdate
from http import HTTPStatus

from gateway import clock
from gateway.wire.dialect import EVENT_STREAM, NDJSON

__all__ = ["Headers", "bodyless", "is_stream", "response_head"]

Headers = Iterable[tuple[str, str]]

_REASONS = {status.value: status.phrase for status in HTTPStatus}
# The edge frames every answer itself; what an engine said about its own framing must not pass.
_FRAMING = frozenset(("connection", "content-length", "date", "keep-alive", "transfer-encoding", "upgrade", "trailer"))
_STREAM_HEADERS = (("cache-control", "no-cache"), ("x-accel-buffering", "no"))

_date_second = -1
_date_text = ""


def _date() -> str:
    """The Date field of this second; formatting it once a second keeps it off the hot path."""
    global _date_second, _date_text
    second = int(clock.wall())
    if second != _date_second:
        _date_second, _date_text = second, formatdate(second, usegmt=True)
    return _date_text


def bodyless(status: int) -> bool:
    """Whether answers of this status never have a body (RFC 9110 section 6.4.1)."""
    return status in (204, 304) or 100 <= status < 200


def is_stream(content_type: str) -> bool:
    """Whether a body of this type comes event by event, so that an error can be told inside it."""
    return content_type.lower().startswith((EVENT_STREAM, NDJSON))


def _clean(value: str) -> str:
    """The value without line breaks and NUL, which could end the field and begin another."""
    if "\r" in value or "\n" in value or "\0" in value:
        return value.replace("\r", " ").replace("\n", " ").replace("\0", " ")
    return value


def response_head(
    status: int, headers: Headers, *, length: int | None, chunked: bool, keep_alive: bool, http11: bool
) -> bytes:
    """The head of one answer, blank line included. `length` is the body's, in bytes.

    Proxies on the way are told not to cache or buffer an event stream.
    """
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}\r\nDate: {_date()}\r\n"]
    seen = set()
    events = False
    for name, value in headers:
        lower = name.lower()
        if lower in _FRAMING:
            continue
        seen.add(lower)
        if lower == "content-type" and is_stream(value):
            events = True
        lines.append(f"{_clean(name)}: {_clean(value)}\r\n")
    if events:
        lines.extend(f"{name}: {value}\r\n" for name, value in _STREAM_HEADERS if name not in seen)
    if chunked:
        lines.append("Transfer-Encoding: chunked\r\n")
    elif length is not None:
        lines.append(f"Content-Length: {length}\r\n")
    if not keep_alive:
        lines.append("Connection: close\r\n")
    elif not http11:
        lines.append("Connection: keep-alive\r\n")
    lines.append("\r\n")
    return "".join(lines).encode("latin-1", "replace")
