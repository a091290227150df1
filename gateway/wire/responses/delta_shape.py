"""The shape that the deltas of one item share, so that most of them are known by their ends alone.

An engine writes every delta alike but for the text and the number of the event, which stands before or after it.
"""

from __future__ import annotations

import re

__all__ = ["DeltaShape"]

_TEXT = re.compile(rb'"delta"\s*+:\s*+"')
_STRING_END = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NUMBER = re.compile(rb'(?<="sequence_number":)\s*+(\d++)')
_DIGITS = 12
"""More than the number of any event has."""
_PATIENCE = 4
"""Shapes to learn in vain before giving up; each item of an answer has one of its own."""


class DeltaShape:
    """Learns the ends of a delta and recognises others by them."""

    __slots__ = ("_after", "_before", "_first", "_last", "_misses")

    def __init__(self) -> None:
        self._first = self._last = b""  # what events begin and end with
        self._before: bytes | None = None  # between the number and the text, where it stands before
        self._after: bytes | None = None  # between the text and the number, where it stands after
        self._misses = 0

    def match(self, event: bytes) -> bool:
        """Whether it is one more delta, with text in it."""
        if not self._first or not event.startswith(self._first) or not event.endswith(self._last):
            return False
        start, end = len(self._first), len(event) - len(self._last)
        if self._before is not None:
            at = event.find(self._before, start, start + len(self._before) + _DIGITS)
            if at < 0 or not event[start:at].isdigit():
                return False
            start = at + len(self._before)
        if self._after is not None:
            at = event.rfind(self._after, max(start, end - len(self._after) - _DIGITS), end)
            if at < 0 or not event[at + len(self._after) : end].isdigit():
                return False
            end = at
        if end <= start:
            return False
        self._misses = 0
        return True

    def learn(self, event: bytes) -> None:
        """Take the ends of a delta that was looked at in full."""
        if self._misses >= _PATIENCE:
            return
        self._misses += 1
        texts = _TEXT.findall(event)
        start = _TEXT.search(event)
        end = None if start is None else _STRING_END.match(event, start.end())
        if len(texts) != 1 or start is None or end is None:
            return
        head, tail = event[: start.end()], event[end.end() - 1 :]
        before, after = _NUMBER.search(head), _NUMBER.search(tail)
        self._first = head if before is None else head[: before.start(1)]
        self._before = None if before is None else head[before.end(1) :]
        self._last = tail if after is None else tail[after.end(1) :]
        self._after = None if after is None else tail[: after.start(1)]
