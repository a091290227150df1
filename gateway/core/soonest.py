"""Names by a moment, the soonest at hand."""

from __future__ import annotations

from collections.abc import Container
from heapq import heapify, heappop, heappush

__all__ = ["Soonest"]

_SPARE = 64
"""Entries of names that are gone which are always put up with."""


class Soonest:
    """Moments of names, of which those that are gone are found out when they come up, or when they are too many.

    `alive` holds the names that count. A name that comes again must come with the same moment.
    """

    __slots__ = ("_alive", "_heap")

    def __init__(self, alive: Container[str]) -> None:
        self._alive = alive
        self._heap: list[tuple[float, str]] = []

    def add(self, moment: float, name: str, living: int) -> None:
        """Note one; `living` names count at present."""
        heappush(self._heap, (moment, name))
        if len(self._heap) > 2 * living + _SPARE:
            self._heap = [entry for entry in self._heap if entry[1] in self._alive]
            heapify(self._heap)

    def first(self) -> tuple[float, str] | None:
        """The soonest of those that count; None when there is none."""
        while self._heap and self._heap[0][1] not in self._alive:
            heappop(self._heap)
        return self._heap[0] if self._heap else None

    def until(self, moment: float) -> list[str]:
        """All that come no later, soonest first; they stay."""
        found, stack = [], [0]
        heap = self._heap
        while stack:
            at = stack.pop()
            if at < len(heap) and heap[at][0] <= moment:
                if heap[at][1] in self._alive:
                    found.append(heap[at])
                stack += (2 * at + 1, 2 * at + 2)
        return [name for _, name in sorted(set(found))]
