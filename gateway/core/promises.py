"""Places kept for those who were turned away and told when to come back.

Without them "try again in 8 s" is a guess: under lasting overload who comes back meets the queue as full as before.
With them those who are told to come back form a queue of their own behind the one that waits here.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

__all__ = ["EARLY", "LATE", "Promises"]

EARLY = 1.0
"""Seconds before its moment from which on a promise is kept: a client's clock is its own."""
LATE = 20.0
"""Seconds after its moment until which it is kept."""
_MOST = 4096


@dataclass(frozen=True, slots=True)
class _Promise:
    at: float
    model: str
    work: int


class Promises:
    """Promises by client and prompt, bounded. Moments in seconds on one monotonic clock, work in tokens."""

    __slots__ = ("_made", "_work")

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, int], _Promise] = OrderedDict()
        """As they were made: nearly in order of their moments, since each is told the end of the line."""
        self._work: dict[str, int] = {}

    def __len__(self) -> int:
        """Promises that may still be claimed."""
        return len(self._made)

    def work(self, model: str, now: float) -> int:
        """Tokens of work that was promised a place for a model and has not come back yet."""
        self._forget(now)
        return self._work.get(model, 0)

    def make(self, client: str, prompt: int, model: str, work: int, at: float, now: float) -> None:
        """Promise a place at a moment to this client, for the prompt with this hash; an older one is replaced."""
        self._forget(now)
        self._drop((client, prompt))
        while len(self._made) >= _MOST:
            self._drop(next(iter(self._made)))
        self._made[client, prompt] = _Promise(at, model, work)
        self._work[model] = self._work.get(model, 0) + work

    def claim(self, client: str, prompt: int, now: float) -> float | None:
        """The moment that was promised to whoever comes now, if it comes about then; a promise is kept once.

        Who comes too early has to wait like everybody, and may still come back at its time.
        """
        self._forget(now)
        promise = self._made.get((client, prompt))
        if promise is None or now < promise.at - EARLY:
            return None
        self._drop((client, prompt))
        return promise.at if now <= promise.at + LATE else None

    def _forget(self, now: float) -> None:
        """Drop what nobody came for, first made first."""
        while self._made:
            key, promise = next(iter(self._made.items()))
            if promise.at + LATE >= now:
                return
            self._drop(key)

    def _drop(self, key: tuple[str, int]) -> None:
        promise = self._made.pop(key, None)
        if promise is None:
            return
        left = self._work[promise.model] - promise.work
        if left:
            self._work[promise.model] = left
        else:
            del self._work[promise.model]
