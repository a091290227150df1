"""How much slower or faster a backend is than its prior says, learned from what it does."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["ALARMED_RATE", "FURTHEST", "RATE", "LearnedFactor"]

RATE = 0.1
"""Weight of one observation."""
ALARMED_RATE = 0.3
"""The same while a change has been detected and the old level is known to be wrong."""
FURTHEST = 1.5
"""The residual that one observation counts for at most, and so the most that is learned."""
_HALF_LIFE_SECONDS = 3600.0
_UNTRAINED_SIGMA = 0.8
_HEAD_START = 2.0


@dataclass(slots=True)
class LearnedFactor:
    """Observed over predicted seconds of one backend in one phase (prefill or decode), as a log residual.

    It drifts back to 1 with a half-life of an hour while nothing is observed. `sigma` is the spread of the residuals
    (natural log); above 0.7 the predictions aren't trained yet.
    """

    level: float = 0.0
    """ln(observed / predicted), as of `updated`."""
    variance: float = _UNTRAINED_SIGMA**2
    samples: int = 0
    updated: float = 0.0

    @property
    def sigma(self) -> float:
        """Spread of ln(observed / predicted)."""
        return math.sqrt(self.variance)

    def factor(self, now: float) -> float:
        """Multiply predicted seconds by this. `now` in seconds, on the clock that `learn` is told."""
        return math.exp(self._faded(now))

    def learn(self, observed: float, predicted: float, now: float, rate: float = RATE) -> None:
        """Learn one pair of seconds; `predicted` is the prior's own, not multiplied by this factor.

        The first samples weigh more (1/3, 1/4, ...), later ones `rate`. Pairs that aren't positive are ignored.
        """
        if observed <= 0.0 or predicted <= 0.0:
            return
        residual = min(FURTHEST, max(-FURTHEST, math.log(observed) - math.log(predicted)))
        level = self._faded(now)
        weight = max(rate, 1.0 / (self.samples + 1.0 + _HEAD_START))
        self.variance += weight * ((residual - level) ** 2 - self.variance)
        self.level = level + weight * (residual - level)
        self.samples += 1
        self.updated = now

    def _faded(self, now: float) -> float:
        idle = max(0.0, now - self.updated)
        return self.level * math.exp2(-idle / _HALF_LIFE_SECONDS)
