"""Server-sent events: bytes cut anywhere in, whole events out, byte for byte.

Framing follows the WHATWG "event stream" grammar: a line ends with LF, CR or CRLF, an event with an empty line. Nothing
is decoded to text here, so a character cut by a network read stays whole.
"""

from __future__ import annotations

import re

from gateway.errors import StreamBroken

__all__ = ["DEFAULT_LIMIT", "Framer", "data_of", "fields"]

DEFAULT_LIMIT = 16 * 1024 * 1024
"""Bytes of one event; big tool arguments and images in a delta stay far below it."""

_BOM = b"\xef\xbb\xbf"
# Atomic groups: a CRLF must never be read as two line ends.
_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE = re.compile(rb"\r\n|\n|\r")


class Framer:
    """Splits a response body into events; `limit` bounds one event in bytes."""

    __slots__ = ("_limit", "_rest")

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()

    @property
    def tail(self) -> bytes:
        """What came after the last whole event: an unfinished event, or a body that is no event stream."""
        return bytes(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """The events that `data` completes, each with its blank line; all of them joined with `tail` are the input.

        Raises StreamBroken when an unfinished event is over the limit.
        """
        rest = self._rest
        if rest:
            seen = max(0, len(rest) - 3)  # a blank line may have begun in the last three bytes
            rest += data
            if rest.find(b"\n", seen) < 0 and rest.find(b"\r", seen) < 0:
                self._check()
                return []
            data = bytes(rest)
            if _BLANK.search(data, seen) is None:
                self._check()
                return []
        elif data.endswith(b"\n\n") and data.find(b"\n\n") == len(data) - 2 and b"\r" not in data:
            return [data]  # one event a read, as engines flush them
        if b"\r" in data:
            events, left = _split(data)
        else:
            *whole, left = data.split(b"\n\n")
            events = [event + b"\n\n" for event in whole]
        rest[:] = left
        self._check()
        return events

    def end(self) -> list[bytes]:
        """The body has ended: an event whose blank line ends with a lone CR is whole after all."""
        rest = bytes(self._rest)
        found = _BLANK.search(rest)
        if found is None or found.end() != len(rest):
            return []
        self._rest.clear()
        return [rest]

    def _check(self) -> None:
        if len(self._rest) > self._limit:
            raise StreamBroken(f"the engine sent one event of more than {self._limit} bytes")


def _split(data: bytes) -> tuple[list[bytes], bytes]:
    events: list[bytes] = []
    at = 0
    for blank in _BLANK.finditer(data):
        end = blank.end()
        if end == len(data) and data.endswith(b"\r"):
            break  # its LF may be in the next read
        events.append(data[at:end])
        at = end
    return events, data[at:]


def data_of(event: bytes) -> bytes | None:
    """The event's `data` lines joined with LF, or None when it has none (a comment, a lone `retry:`, a blank)."""
    if event.startswith(b"data: ") and event.endswith(b"\n\n") and event.find(b"\n") == len(event) - 2:
        return event[6:-2]
    lines = fields(event, b"data")
    return b"\n".join(lines) if lines else None


def fields(event: bytes, name: bytes) -> list[bytes]:
    """The values of every `name:` line of the event, without the one space that may follow the colon."""
    found: list[bytes] = []
    for line in _LINE.split(event.removeprefix(_BOM)):
        field, colon, value = line.partition(b":")
        if field == name and colon:
            found.append(value.removeprefix(b" "))
    return found
