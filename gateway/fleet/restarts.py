"""Whether an engine was started anew since it was last seen: its cache is empty, and its figures may be others."""

from __future__ import annotations

from gateway.engines.adapter import Facts, Load

__all__ = ["Incarnation"]

CLOCK_SLACK = 2.0
"""Seconds by which one process may tell its start differently."""

_Sizes = tuple[int, ...] | None


class Incarnation:
    """What one backend's answers showed of the process that gave them.

    A later start than any before is a restart; an earlier one is not, since an address may stand for several engines
    that answer in turn. So is another size that only a start can change, and, where no start is told, a counter that
    went back.
    """

    __slots__ = ("_doubted", "_facts", "_found", "_generated", "_sampled", "_started_at", "_told_apart")

    def __init__(self) -> None:
        self._started_at: float | None = None
        self._facts: Facts | None = None
        self._found: _Sizes = None
        self._sampled: _Sizes = None
        self._generated: float | None = None
        self._doubted: _Sizes = None
        self._told_apart = False
        """Samples and discovery tell one size differently, so they are not compared with each other."""

    def forget(self) -> None:
        """It went away, and whatever comes back is known to be new."""
        self._facts = self._found = self._sampled = self._generated = None

    def sampled(self, load: Load) -> bool:
        """Take in a sample; whether it can't be of the process that was seen before."""
        later, resized = self._is_later(load.restarted_at), self._is_resized(load.capacity)
        old, new = self._generated, load.tokens_generated
        self._generated = new
        reset = load.restarted_at is None and old is not None and new is not None and new < old
        return later or resized or reset

    def discovered(self, facts: Facts) -> bool:
        """Take in what discovery found; whether it can't be of the process that was seen before."""
        before, self._facts = self._facts, facts
        self._found = facts.capacity
        if self._doubted is not None:
            self._told_apart |= self._doubted == facts.capacity
            self._doubted = None
        later = self._is_later(facts.started_at)
        if before is None:
            return later
        sizes = ((before.slots, facts.slots), (before.pool_tokens, facts.pool_tokens), (before.block, facts.block))
        return later or any(old is not None and new is not None and old != new for old, new in sizes)

    def _is_resized(self, capacity: _Sizes) -> bool:
        if capacity is None:
            return False
        before, self._sampled = self._sampled, capacity
        if before is not None or self._told_apart or self._found is None:
            return before is not None and before != capacity
        if self._found == capacity:
            return False
        self._doubted = self._found
        return True

    def _is_later(self, start: float | None) -> bool:
        if start is None:
            return False
        newest, self._started_at = self._started_at, max(start, self._started_at or start)
        return newest is not None and start > newest + CLOCK_SLACK
