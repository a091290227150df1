"""How far observations stray from estimates: a decayed histogram of their ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["RatioSpread"]

_WIDTH = 0.02
_BINS = 81
_MIDDLE = _BINS // 2
_DECAY = 0.99
_PRIOR_SAMPLES = 8.0
_PRIOR_SIGMA = 0.13
_FLOOR = 1.02


def _prior() -> list[float]:
    """Eight samples' worth of a log-normal of 13 %: what byte counts miss by before anything is learned."""
    edges = [(i - _MIDDLE + 0.5) * _WIDTH / (_PRIOR_SIGMA * math.sqrt(2.0)) for i in range(_BINS - 1)]
    below = [0.0, *(0.5 + 0.5 * math.erf(edge) for edge in edges), 1.0]
    return [_PRIOR_SAMPLES * (high - low) for low, high in pairwise(below)]


_PRIOR = _prior()


class RatioSpread:
    """Quantiles of observed/estimated in bins of 2 %, from 0.45 to 2.2; a memory of about 100 samples."""

    __slots__ = ("_high", "_weight", "_weights")

    def __init__(self) -> None:
        self._weights = list(_PRIOR)
        self._weight = 1.0
        self._high: float | None = None

    def state(self) -> tuple[float, ...]:
        """Its weights by bin, in units of the newest observation."""
        return tuple([weight / self._weight for weight in self._weights])

    @classmethod
    def restored(cls, weights: Sequence[float]) -> RatioSpread:
        """As it was kept. Raises ValueError for weights that no observations make."""
        if len(weights) != _BINS or not all(0.0 <= weight < 1e6 for weight in weights) or not any(weights):
            raise ValueError("a spread of other bins")
        spread = cls()
        spread._weights = list(weights)
        return spread

    @property
    def high(self) -> float:
        """The ratio that 95 % of observations stay under, at least 1.02."""
        if self._high is None:
            self._high = max(_FLOOR, self.quantile(0.95))
        return self._high

    def quantile(self, q: float) -> float:
        """The ratio that a share `q` of the observations stays under (upper edge of its bin)."""
        wanted = q * sum(self._weights)
        seen = 0.0
        for i, weight in enumerate(self._weights):
            seen += weight
            if seen >= wanted:
                return math.exp((i - _MIDDLE + 0.5) * _WIDTH)
        return math.exp((_BINS - _MIDDLE - 0.5) * _WIDTH)

    def learn(self, ratio: float, weight: float = 1.0) -> None:
        """Count one observation; older ones fade by 1 % (kept by growing the new one's weight instead)."""
        self._weight /= _DECAY
        i = round(math.log(ratio) / _WIDTH) + _MIDDLE
        self._weights[min(_BINS - 1, max(0, i))] += self._weight * weight
        if self._weight > 1e6:
            self._weights = [held / self._weight for held in self._weights]
            self._weight = 1.0
        self._high = None
