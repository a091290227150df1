"""Rewrite and read top-level members of a large JSON answer while it passes by in pieces.

An answer of embeddings has tens of megabytes, and of those only `model` and `usage` matter here. Nothing is held back:
every byte goes on at once, but for those of a value that is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

import msgspec

from gateway.wire.depths import Place, depths
from gateway.wire.members import MAX_MEMBERS

__all__ = ["TopLevel"]

MOST_KEPT = 64 * 1024
"""Bytes of a captured value; a longer one is no `usage`."""
_MOST_KEY = 512
"""Bytes of a key that is compared, escapes and all."""
_FIRST_BLOCK, _BLOCK = 256, 64 * 1024
"""Bytes of an object or array that are looked at in one step; the block in which it ends is divided."""

_SPACE = re.compile(rb"[ \t\n\r]*+")
_TO_QUOTE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_PLAIN = re.compile(rb"[^,\]} \t\n\r]*+")


class TopLevel:
    """The walk over one answer.

    replace: raw JSON values to put in place of those of top-level members, but not of null: an answer that names no
    model does not come to name one. capture: members whose raw values are kept. A member that comes twice is replaced
    twice, and the later value is kept. What is no JSON object passes unchanged, and so does what comes after
    MAX_MEMBERS members.
    """

    def __init__(self, replace: Mapping[str, bytes], capture: Collection[str] = ()) -> None:
        self.captured: dict[str, bytes] = {}
        """The raw values, whole and of 64 KiB at most, of the members to capture that have come so far."""
        self._replace = replace
        self._capture = capture
        self._left = MAX_MEMBERS
        self._key = bytearray()
        self._name: str | None = None
        self._escaped = False  # the byte to come, in a key or a string, is an escaped one
        self._depth = 0
        self._place = Place()
        self._kept: bytearray | None = None
        self._dropping = False
        self._out: list[bytes] = []
        self._sent = 0  # up to where this piece is sent, or dropped
        self._step: Callable[[TopLevel, bytes, int], int] = TopLevel._start  # bound, it would be a cycle

    def feed(self, data: bytes) -> bytes:
        """What the client gets for this piece; the pieces' borders make no difference to the whole."""
        self._sent = at = 0
        while at < len(data):
            at = self._step(self, data, at)
        if not self._dropping:
            if not self._out and not self._sent:
                return data
            self._out.append(data[self._sent :])
        whole = b"".join(self._out)
        self._out.clear()
        return whole

    # Each step takes the piece from `at` on and returns how far it came; the next one goes on from there.

    def _start(self, data: bytes, at: int) -> int:
        return self._expect(data, at, 0x7B, TopLevel._before_key)

    def _before_key(self, data: bytes, at: int) -> int:
        self._key.clear()
        return self._expect(data, at, 0x22, TopLevel._in_key)

    def _in_key(self, data: bytes, at: int) -> int:
        end, closed = self._to_quote(data, at)
        if len(self._key) <= _MOST_KEY:
            self._key += data[at:end]
        if closed:
            self._step = TopLevel._colon
        return end + closed

    def _colon(self, data: bytes, at: int) -> int:
        return self._expect(data, at, 0x3A, TopLevel._before_value)

    def _before_value(self, data: bytes, at: int) -> int:
        at = _past(_SPACE, data, at)
        if at == len(data):
            return at
        self._left -= 1
        first = data[at : at + 1]
        if first in b",:]}" or not self._left:
            self._step = TopLevel._rest
            return at
        self._name = _decoded(self._key)
        if self._name in self._capture:
            self._kept = bytearray()
        instead = None if self._name is None or first == b"n" else self._replace.get(self._name)
        if instead is not None:
            self._out += (data[self._sent : at], instead)
            self._dropping = True
        if first == b'"':
            self._step = TopLevel._in_string
        elif first in b"{[":
            self._depth, self._place = 1, Place()
            self._step = TopLevel._in_container
        else:
            self._step = TopLevel._in_plain
            return at
        self._keep(first)
        return at + 1

    def _in_string(self, data: bytes, at: int) -> int:
        end, closed = self._to_quote(data, at)
        self._keep(data[at : end + closed])
        return self._after(end + 1) if closed else end

    def _in_container(self, data: bytes, at: int) -> int:
        size, grow = _FIRST_BLOCK, True
        while at < len(data):
            block = data[at : at + size]
            found = depths(block, self._place)
            if self._depth + found.lowest <= 0 and len(block) > 1:
                size, grow = max(1, len(block) // 16), False
                continue
            self._keep(block)
            at += len(block)
            self._depth += found.last
            self._place = found.place
            if self._depth <= 0:
                return self._after(at)
            if grow:
                size = min(_BLOCK, size * 16)
        return at

    def _in_plain(self, data: bytes, at: int) -> int:
        end = _past(_PLAIN, data, at)
        self._keep(data[at:end])
        return end if end == len(data) else self._after(end)

    def _after(self, at: int) -> int:
        # A value ends before `at`.
        if self._kept is not None:
            if self._name is not None and len(self._kept) <= MOST_KEPT:
                self.captured[self._name] = bytes(self._kept)
            self._kept = None
        if self._dropping:
            self._dropping = False
            self._sent = at
        self._step = TopLevel._next
        return at

    def _next(self, data: bytes, at: int) -> int:
        return self._expect(data, at, 0x2C, TopLevel._before_key)

    def _rest(self, data: bytes, _at: int) -> int:
        return len(data)

    def _expect(self, data: bytes, at: int, byte: int, step: Callable[[TopLevel, bytes, int], int]) -> int:
        # Past spaces and this byte; any other one ends the walk.
        at = _past(_SPACE, data, at)
        if at == len(data):
            return at
        self._step = step if data[at] == byte else TopLevel._rest
        return at + 1

    def _to_quote(self, data: bytes, at: int) -> tuple[int, bool]:
        # The end of what comes before the closing quote, and whether that is there.
        if self._escaped:
            self._escaped = False
            at += 1
        end = _past(_TO_QUOTE, data, at)
        if end >= len(data):
            return len(data), False
        if data[end] == 0x22:
            return end, True
        self._escaped = True  # a backslash, and nothing after it yet
        return end + 1, False

    def _keep(self, data: bytes) -> None:
        if self._kept is not None and len(self._kept) <= MOST_KEPT:
            self._kept += data


def _past(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)  # they match nothing, too
    return at if found is None else found.end()


def _decoded(key: bytearray) -> str | None:
    if len(key) > _MOST_KEY:
        return None
    try:
        return msgspec.json.decode(b'"' + key + b'"', type=str)
    except (msgspec.MsgspecError, UnicodeError):
        return None
