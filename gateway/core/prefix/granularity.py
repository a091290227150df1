"""In what steps an engine's cache hits really come, which may be coarser than its blocks.

Models with recurrent layers find a prefix only where their state was kept: vLLM's hybrids hit in steps of 528 to 2096
tokens while their metrics tell a block of 16.
"""

from __future__ import annotations

from collections import deque

__all__ = ["Granularity"]

_KEPT = 32
_DISTINCT = 4
"""Different counts from which something is said: one count is a multiple of everything that divides it."""
_STEP, _MOST = 16, 4096
_SHARE = 0.9
_EVERY = 4
"""Counts that agree with what is known, of which one is looked at: 0.3 ms each time."""


class Granularity:
    """Cached tokens as an engine reported them, and the largest step that nearly all of them are multiples of."""

    __slots__ = ("_count", "_seen", "tokens")

    def __init__(self) -> None:
        self._seen: deque[int] = deque(maxlen=_KEPT)
        self._count = 0
        self.tokens = 1
        """Tokens of a step; 1 while nothing is known."""

    def learn(self, cached: int, block: int) -> None:
        """Take in a count of more than none; `block` is what the engine calls one."""
        if cached <= 0:
            return
        self._seen.append(cached)
        self._count += 1
        if cached % self.tokens == 0 and self._count % _EVERY:
            return
        distinct = set(self._seen)
        if len(distinct) < _DISTINCT:
            return
        first, needed = max(_STEP, block), _SHARE * len(distinct)
        most = min(_MOST, max(distinct))
        steps = range(most - most % first, first - 1, -first)
        self.tokens = next((step for step in steps if sum(each % step == 0 for each in distinct) >= needed), 1)
