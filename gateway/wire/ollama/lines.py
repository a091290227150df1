"""Newline-delimited JSON: bytes cut anywhere in, whole lines out, byte for byte."""

from __future__ import annotations

from gateway.errors import StreamBroken
from gateway.wire.json_object import is_object
from gateway.wire.sse import DEFAULT_LIMIT

__all__ = ["LineFramer", "data_of"]


class LineFramer:
    """Splits a response body into lines; `limit` bounds one line in bytes. The counterpart of `sse.Framer`."""

    __slots__ = ("_limit", "_rest")

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()

    @property
    def tail(self) -> bytes:
        """What came after the last whole line."""
        return bytes(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, each with its end; all of them joined with `tail` are the input.

        Raises StreamBroken when an unfinished line is over the limit.
        """
        rest = self._rest
        end = data.rfind(b"\n") + 1
        if not end:
            rest += data
            self._check()
            return []
        if not rest and data.find(b"\n") == len(data) - 1:
            return [data]  # one line a read, as the engine flushes them
        lines = [line + b"\n" for line in data[: end - 1].split(b"\n")]  # a CR is space to JSON
        if rest:
            lines[0] = bytes(rest) + lines[0]
            rest.clear()
        rest += data[end:]
        self._check()
        return lines

    def end(self) -> list[bytes]:
        """The body has ended: a last line without its end is whole after all if it is a JSON object."""
        rest = bytes(self._rest)
        if not is_object(rest):
            return []
        self._rest.clear()
        return [rest]

    def _check(self) -> None:
        if len(self._rest) > self._limit:
            raise StreamBroken(f"the engine sent one line of more than {self._limit} bytes")


def data_of(line: bytes) -> bytes | None:
    """The JSON of a line, None for a blank one."""
    return line.strip() or None
