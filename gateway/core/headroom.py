"""How much of a KV pool may be filled: less after every preemption, more after a while without one at high use.

An engine preempts when blocks run out, and what it preempts is computed again. That is the one sign which can't mean
anything else, so the share goes down by a factor on it and up by a step (AIMD; constants: algorithms 2.1).
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EVERY", "FULLEST", "LOWEST", "RISE", "SPARED_BYTES", "Headroom", "Range", "range_of"]

LOWEST, FULLEST = 0.6, 0.98
CUT, STEP = 0.95, 0.01
EVERY = 10.0
"""Seconds that a cut has to show before the next: preemptions come in bursts."""
RISE = 60.0
"""Seconds of high use without a preemption that earn a step up."""
WELL_FILLED = 0.85
"""Share of the allowed tokens in use from which on the absence of preemptions says something."""
SPARED_BYTES = 6_000_000_000
"""Memory that a machine needs for itself: one whose CPU and GPU share it stops as a whole when it runs out
(algorithms 5.5)."""
_LONGEST_SAMPLE = 10.0
"""Seconds for which one sample speaks."""


class Range(NamedTuple):
    """Shares of the pool: where to start, and between what to stay."""

    start: float
    least: float = LOWEST
    most: float = FULLEST


def range_of(start: float, *, unified: bool, memory: int, weights: int, pool: int) -> Range:
    """Between what shares the headroom of a pool may move that starts at `start`.

    `unified`: the machine's own memory is the device's. Then what is not filled must leave it enough, by the bytes of
    the device, of the weights and of the pool; where those are not known it never goes above `start`.
    """
    if not unified:
        return Range(start, min(LOWEST, start), max(FULLEST, start))
    most = start
    if memory > 0 and weights > 0 and pool > 0:
        most = min(FULLEST, max(0.0, (memory - weights - SPARED_BYTES) / pool))
    return Range(min(start, most), min(LOWEST, start, most), most)


class Headroom:
    """One backend's share. `now` in seconds on one monotonic clock."""

    __slots__ = ("_bounds", "_cut_at", "_filled", "_seen_at", "share")

    def __init__(self, bounds: Range) -> None:
        self.restart(bounds)

    def restart(self, bounds: Range | None = None) -> None:
        """A new engine, or other bounds: begin at the start."""
        self._bounds: Range = self._bounds if bounds is None else bounds
        self.share = self._bounds.start
        self._cut_at: float | None = None
        self._filled = 0.0
        self._seen_at: float | None = None

    def within(self, bounds: Range) -> None:
        """Other facts were found; begins anew if they make a difference."""
        if bounds != self._bounds:
            self.restart(bounds)

    def preempted(self, now: float) -> bool:
        """The engine preempted, or ran out of memory; True when that lowers the share."""
        self._filled = 0.0
        if self._cut_at is not None and now - self._cut_at < EVERY:
            return False
        self._cut_at = now
        self.share = max(self._bounds.least, CUT * self.share)
        return True

    def crashed(self, now: float) -> None:
        """The engine died of too little memory: half of what was filled is believed, and time earns it back."""
        self._cut_at, self._filled = now, 0.0
        self.share = max(0.5 * self._bounds.least, 0.5 * self.share)

    def sampled(self, usage: float, now: float) -> None:
        """So much of the pool, a share, is in use, and nothing was preempted since the sample before."""
        since, self._seen_at = self._seen_at, now
        if since is None or usage <= WELL_FILLED * self.share:
            return
        self._filled += min(max(0.0, now - since), _LONGEST_SAMPLE)
        if self._filled >= RISE:
            self._filled = 0.0
            self.share = min(self._bounds.most, self.share + STEP)
