"""One backend over time: what was seen of it, what that means, and since when."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import median

from gateway.core.degrading.causes import Cause
from gateway.core.degrading.drift import Drift
from gateway.core.degrading.judging import Verdict, judge
from gateway.core.degrading.phase import Phase
from gateway.core.degrading.signs import Signs
from gateway.core.headroom import Headroom

__all__ = ["Condition", "common"]

_MEMORY_LIFE = 600.0
"""Seconds for which an answer that told of too little memory counts."""
_CRASH_AFTER = 120.0
"""Seconds after such an answer in which an engine that is started anew has most likely died of it."""
_RATE_OVER = 60.0
_KEPT = 64
_PEERS = 3
"""Backends of a model, this one included, from which on what all have in common is taken for the traffic's doing."""


class Condition:
    """Seconds on one monotonic clock."""

    __slots__ = ("_memory_errors", "_preempted", "_tells_preemptions", "drifts", "since", "verdict")

    def __init__(self) -> None:
        self.drifts = {phase: Drift() for phase in Phase}
        self.verdict = Verdict()
        self.since: float | None = None
        """When the cause that stands began to be seen; None: nothing is wrong."""
        self._memory_errors: deque[float] = deque(maxlen=_KEPT)
        self._preempted: deque[tuple[float, int]] = deque(maxlen=_KEPT)
        self._tells_preemptions = False

    def paced(self, phase: Phase, ratio: float, now: float) -> None:
        """Something took so many times the seconds that were predicted of it."""
        self.drifts[phase].learn(ratio, now)

    def ran_out(self, now: float) -> None:
        """An answer told of too little memory."""
        self._memory_errors.append(now)

    def preempted(self, count: int, now: float) -> None:
        """So many preemptions since the sample before, of an engine that counts them."""
        self._tells_preemptions = True
        if count:
            self._preempted.append((now, count))

    def restarted(self, headroom: Headroom, now: float) -> None:
        """Its engine is another process; if memory most likely killed the one before, half of the pool is believed."""
        if any(now - at < _CRASH_AFTER for at in self._memory_errors):
            headroom.crashed(now)
        for drift in self.drifts.values():
            drift.begin_anew()

    def preemptions(self, now: float) -> float | None:
        """Preemptions a second, over the last minute; None of an engine that doesn't tell."""
        if not self._tells_preemptions:
            return None
        return sum(count for at, count in self._preempted if now - at < _RATE_OVER) / _RATE_OVER

    def memory_errors(self, now: float) -> int:
        """Answers of the last ten minutes that told of too little memory."""
        return sum(now - at < _MEMORY_LIFE for at in self._memory_errors)

    def slowdown(self, phase: Phase, shift: float = 0.0) -> float | None:
        """See `Drift.slowdown`."""
        return self.drifts[phase].slowdown(shift)

    def leaning(self, phase: Phase, shift: float = 0.0) -> bool:
        """See `Drift.leaning`."""
        return self.drifts[phase].leaning(shift)

    def judged(self, signs: Signs, now: float) -> Verdict:
        """What the signs mean; the time at which a cause was first seen is kept while it stays the same."""
        found = judge(signs)
        if found.cause is not self.verdict.cause:
            self.since = self._began(found.cause, signs, now)
        self.verdict = found
        return found

    def _began(self, cause: Cause, signs: Signs, now: float) -> float | None:
        if cause is Cause.NONE:
            return None
        if cause in (Cause.DEAD, Cause.LOADING):
            return now - signs.health_s
        if cause is Cause.HUNG:
            return now - signs.silent_s
        began = [drift.since for drift in self.drifts.values() if drift.since is not None]
        return min(began) if began and cause not in (Cause.MEMORY, Cause.QUEUEING) else now


def common(conditions: Iterable[Condition], phase: Phase) -> float:
    """What the backends of a model have in common (ln), if they are enough to tell: the median of their levels."""
    levels = [one.drifts[phase].level for one in conditions if one.drifts[phase].known]
    return median(levels) if len(levels) >= _PEERS else 0.0
