"""Long values of an answer, held once as JSON and repeated without another copy.

A response says its texts again when they are whole: as a text, in their part, in their item and in the response. All
four share the same bytes here.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import msgspec

__all__ = ["SHORT", "Grown", "Repeating"]

SHORT = 16 * 1024
"""Bytes up to which a value is copied into its event: cheaper than a piece of its own."""
_MARK = b"\x00"
"""Stands for a long value; no JSON has this byte, in a string or outside of one."""
_encode = msgspec.json.Encoder().encode


class Grown:
    """A string, or a list with `open` and `close` of `[` and `]`, that grows by pieces."""

    __slots__ = ("_close", "_held", "_open", "_whole", "size")

    def __init__(self, open: bytes = b'"', close: bytes = b'"') -> None:
        self._open, self._close = open, close
        self._held: BytesIO | None = None  # it grows in place, and gives what it holds without a copy
        self._whole = b""
        self.size = 0
        """Bytes that are held."""

    def add(self, value: object) -> None:
        """Go on with this string or list."""
        piece = _encode(value)[1:-1]
        if not piece:
            return
        held = self._held
        if held is None:
            held = self._held = BytesIO()
            self.size += held.write(self._open)
        elif self._open == b"[":
            self.size += held.write(b",")
        self.size += held.write(piece)

    def whole(self) -> bytes:
        """All of it as JSON; nothing may be added any more."""
        if not self._whole:
            if self._held is None:
                self._whole = self._open + self._close
            else:
                self._held.write(self._close)
                self._whole = self._held.getvalue()
                self._held = None
        return self._whole


class Repeating:
    """Encodes what has `Grown` values in it; long ones stay apart until `pieces`."""

    __slots__ = ("_long", "encode")

    def __init__(self) -> None:
        long: list[bytes] = []

        def mark(value: Any) -> msgspec.Raw:
            if not isinstance(value, Grown):
                raise TypeError(f"no JSON for {type(value)}")
            whole = value.whole()
            if len(whole) <= SHORT:
                return msgspec.Raw(whole)
            long.append(whole)
            return msgspec.Raw(_MARK)

        self._long = long
        self.encode: Callable[[object], bytes] = msgspec.json.Encoder(enc_hook=mark).encode
        """The JSON with a mark for each long value; may be encoded again as part of another."""

    def pieces(self, data: bytes) -> list[bytes]:
        """What `encode` gave, joined it is the JSON; the long values in it are not copied."""
        if not self._long:
            return [data]
        parts = data.split(_MARK)
        found = [parts[0]]
        for value, part in zip(self._long, parts[1:], strict=True):
            found += (value, part)
        self._long.clear()
        return found
