"""A clock that jumps from event to event."""

from __future__ import annotations

import heapq

__all__ = ["VirtualClock"]


class VirtualClock:
    """Seconds since the start of the run, and the events to come; ties are broken by order of entry."""

    __slots__ = ("_entries", "_heap", "now")

    def __init__(self) -> None:
        """At 0 with nothing to come."""
        self.now = 0.0
        self._heap: list[tuple[float, int, object]] = []
        self._entries = 0

    def at(self, when_s: float, what: object) -> None:
        """Enter `what` for `when_s`; not before now."""
        self._entries += 1
        heapq.heappush(self._heap, (max(when_s, self.now), self._entries, what))

    def advance(self) -> list[object]:
        """Jump to the next moment; everything entered for it, empty when nothing is left."""
        due: list[object] = []
        if self._heap:
            self.now = self._heap[0][0]
        while self._heap and self._heap[0][0] == self.now:
            due.append(heapq.heappop(self._heap)[2])
        return due
