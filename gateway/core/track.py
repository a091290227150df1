"""What our own requests held on one backend over the last half minute.

An engine's load report is true of a moment that is past when it is read. It is compared with what was ours at that
moment, not with what is ours now.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, Self

from gateway.core.account import Totals

__all__ = ["KEPT", "Own", "Track"]

KEPT = 30.0
"""Seconds that are remembered (algorithms 2.1)."""
_GRAIN = 0.1
"""Seconds within which changes are remembered as one: 300 entries at most, however busy the backend."""


class Own(NamedTuple):
    """What was ours over some time: the most sequences, the most of them before a first token, and tokens of KV cache.

    The engine held at least `least` for us all the time, and at no moment more than `most`.
    """

    running: int
    unread: int
    least: int
    most: int

    @classmethod
    def of(cls, totals: Totals) -> Self:
        """At the moment of these totals."""
        return cls(totals.running, totals.running - totals.decoding, totals.held, totals.holdable)

    def over(self, other: Own) -> Own:
        """Over both times."""
        return Own(
            max(self.running, other.running),
            max(self.unread, other.unread),
            min(self.least, other.least),
            max(self.most, other.most),
        )


class _Entry:
    __slots__ = ("at", "last", "over")

    def __init__(self, at: float, own: Own) -> None:
        self.at = at
        self.over = own
        self.last = own


class Track:
    """A ring of the last `KEPT` seconds. `now` in seconds on one monotonic clock, never going back."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()

    def __len__(self) -> int:
        """Entries that are kept."""
        return len(self._entries)

    def note(self, totals: Totals, now: float) -> None:
        """So much is ours from now on."""
        own, entries = Own.of(totals), self._entries
        if entries and now - entries[-1].at < _GRAIN:
            entry = entries[-1]
            entry.over, entry.last = entry.over.over(own), own
            return
        entries.append(_Entry(now, own))
        while len(entries) > 1 and entries[1].at < now - KEPT:  # the one before says how it was until then
            entries.popleft()

    def between(self, start: float, end: float) -> Own:
        """What was ours from `start` to `end`; before the first note, nothing."""
        found: Own | None = None
        for entry in reversed(self._entries):
            if entry.at > end:
                continue
            # An entry that began before is as it was left, unless its changes may lie within.
            seen = entry.over if entry.at + _GRAIN > start else entry.last
            found = seen if found is None else found.over(seen)
            if entry.at <= start:
                return found
        nothing = Own(0, 0, 0, 0)
        return nothing if found is None else found.over(nothing)
