"""Whether an engine was started anew since it was last seen: its cache is empty, and its figures may be others."""

from __future__ import annotations

from gateway.engines.adapter import Facts, Load

__all__ = ["Incarnation"]

CLOCK_SLACK = 2.0
"""Seconds by which one process may tell its start differently."""


class Incarnation:
    """What one backend's answers showed of the process that gave them.

    A later start than any before is a restart; an earlier one is not, since an address may stand for several engines
    that answer in turn. So is another size that only a start can change, and, where no start is told, a counter that
    went back.
    """

    __slots__ = ("_facts", "_load", "_started_at")

    def __init__(self) -> None:
        self._started_at: float | None = None
        self._facts: Facts | None = None
        self._load: Load | None = None

    def forget(self) -> None:
        """It went away, and whatever comes back is known to be new."""
        self._facts = self._load = None

    def sampled(self, load: Load) -> bool:
        """Take in a sample; whether it can't be of the process that was seen before."""
        before, self._load = self._load, load
        later = self._is_later(load.restarted_at)
        if before is None:
            return later
        resized = before.capacity is not None and load.capacity is not None and before.capacity != load.capacity
        old, new = before.tokens_generated, load.tokens_generated
        reset = load.restarted_at is None and old is not None and new is not None and new < old
        return later or resized or reset

    def discovered(self, facts: Facts) -> bool:
        """Take in what discovery found; whether it can't be of the process that was seen before."""
        before, self._facts = self._facts, facts
        later = self._is_later(facts.started_at)
        if before is None:
            return later
        sizes = ((before.slots, facts.slots), (before.pool_tokens, facts.pool_tokens), (before.block, facts.block))
        return later or any(old is not None and new is not None and old != new for old, new in sizes)

    def _is_later(self, start: float | None) -> bool:
        if start is None:
            return False
        newest, self._started_at = self._started_at, max(start, self._started_at or start)
        return newest is not None and start > newest + CLOCK_SLACK
