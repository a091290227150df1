"""One backend's load as two witnesses tell it: our own leases, and the engine's reports.

Ours are known at once but not to the token; the engine's figures are exact, of a moment that is past, and include what
others sent. Together they tell how much others hold, and how much of the pool may be filled (algorithms 2.1).
"""

from __future__ import annotations

import math

from gateway.core.foreign import SAMPLE_LIFE, ForeignLoad
from gateway.core.headroom import Headroom, Range
from gateway.core.ledger import Totals
from gateway.core.track import KEPT, Own, Track
from gateway.engines.adapter import Load

__all__ = ["LAG", "Observer"]

LAG = 0.25
"""Seconds by which what an engine reports may be older, and our own books behind what it did: a few of its steps."""


class Observer:
    """What was seen of one backend. Tokens, and seconds on the monotonic clock."""

    __slots__ = (
        "_foreign", "_preempted_at", "foreign_running", "foreign_waiting", "headroom", "load", "preemptions",
        "sampled_at", "track",
    )  # fmt: skip

    def __init__(self, bounds: Range) -> None:
        self.headroom = Headroom(bounds)
        self.track = Track()
        self.load: Load | None = None
        """The last scrape."""
        self.sampled_at: float | None = None
        self.foreign_running = 0
        self.foreign_waiting = 0
        """Requests that wait inside the engine though we queued nothing there.

        Others' traffic, or a limit of the engine that is not known here.
        """
        self.preemptions = 0
        """Preemptions that were seen."""
        self._preempted_at = -math.inf
        self._foreign = ForeignLoad()

    def held(self, totals: Totals, now: float) -> None:
        """So much is ours from now on."""
        self.track.note(totals, now)

    def sample(self, load: Load, totals: Totals, pool: int, window: int, asked: float, now: float) -> None:
        """Take in a scrape that was asked for at `asked`; one sequence holds at most `window` tokens of the `pool`."""
        self.track.note(totals, now)
        ours = self.track.between(asked - LAG, now)
        self.foreign_running = max(0, load.running - ours.running) if load.running is not None else 0
        preempted = self._preempted(load)
        if preempted:
            self.preemptions += preempted
            self._preempted_at = now
            self.headroom.preempted(now)
        self._take(load, ours, pool, preempted, now)
        if load.running is not None:
            # An answer of ours that outgrew what was counted is nobody else's: others hold what they run, no more.
            self._foreign.bound(self.foreign_running * window)
        self.load, self.sampled_at = load, now

    def reply(self, load: Load, pool: int, at: float, now: float) -> None:
        """Take in what the head of an answer told that came at `at`: less than a scrape does, and for nothing."""
        if now - at < SAMPLE_LIFE:
            self._take(load, self.track.between(at - LAG, min(now, at + LAG)), pool, 0, now)

    def told(self, now: float) -> Load | None:
        """The last scrape, unless it is too old to say anything."""
        if self.sampled_at is None or now - self.sampled_at >= SAMPLE_LIFE:
            return None
        return self.load

    def foreign_tokens(self, now: float) -> float:
        """KV tokens that others hold."""
        return self._foreign.tokens(now)

    def waits_inside(self, now: float) -> int:
        """Requests that wait inside the engine and are not ours, by the last scrape."""
        return self.foreign_waiting if self.told(now) is not None else 0

    def restarted(self) -> None:
        """The engine was started anew: nothing that was seen of it counts any more."""
        self.headroom.restart()
        self._foreign.forget()
        self.load = self.sampled_at = None
        self.foreign_running = self.foreign_waiting = 0

    def _take(self, load: Load, ours: Own, pool: int, preempted: int, now: float) -> None:
        used = load.kv_tokens
        if load.kv_usage is not None and pool:
            # A share is in whatever unit the pool is counted in here; an engine's own tokens may be another.
            used = int(load.kv_usage * pool)
        if used is not None:
            self._foreign.observe(used, ours.least, ours.most, pool, now)
            if pool and not preempted:
                self.headroom.sampled(used / pool, now)
        if load.waiting is not None:
            # What was preempted waits too, and may be ours.
            unexplained = now - self._preempted_at > KEPT
            self.foreign_waiting = max(0, load.waiting - ours.unread) if unexplained else 0

    def _preempted(self, load: Load) -> int:
        """Preemptions since the scrape before; a counter that went back was reset."""
        before = self.load.preemptions if self.load is not None else None
        if before is None or load.preemptions is None:
            return 0
        return max(0, int(load.preemptions - before))
