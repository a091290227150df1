"""How much of a prior's parts is true: Bayesian linear regression with few unknowns, one observation at a time.

Recursive least squares from a prior of one for nearly every proportion. They share a common factor, so that the first
observation already moves them all; what they differ by is learned from prompts that are made differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from gateway.core.estimators.tokenizer_priors import GROUPS

__all__ = ["START", "Proportions"]

_COMMON_SIGMA = 0.10
"""Of all proportions together."""
_SIGMA = {
    "letters": 0.12,
    "layout": 0.15,
    "digits": 0.15,
    "punctuation": 0.20,
    "alphabets": 0.25,
    "characters": 0.20,
    "structure": 0.60,
    "tools": 0.30,
    "thought": 0.30,
    "past_thought": 0.30,
}
START = tuple(0.0 if group == "past_thought" else 1.0 for group in GROUPS)
"""Templates leave out what was thought before the last question, as far as is known."""
_DRIFT = 0.003
"""Of the prior's variance that comes back with every observation: a memory of some hundreds."""
_ODD = 2.5
"""Standard deviations from which an observation moves the proportions no further."""
_LEAST, _MOST = 0.0, 4.0
_N = len(GROUPS)
_PRIOR = tuple(
    tuple(_COMMON_SIGMA**2 + (_SIGMA[row] ** 2 if row == column else 0.0) for column in GROUPS) for row in GROUPS
)


class Proportions:
    """A factor on each of GROUPS, and how sure of it we are."""

    __slots__ = ("mean", "variance")

    def __init__(self, mean: Sequence[float] | None = None) -> None:
        self.mean = list(mean if mean is not None else START)
        self.variance = [list(row) for row in _PRIOR]

    @classmethod
    def restored(cls, mean: Sequence[float], variance: Sequence[Sequence[float]]) -> Proportions:
        """As they were kept. Raises ValueError for what no prompts teach."""
        square = len(variance) == _N and all(len(row) == _N for row in variance)
        if len(mean) != _N or not square or not all(_LEAST <= factor <= _MOST for factor in mean):
            raise ValueError("proportions of other parts")
        if not all(abs(value) < 10.0 for row in variance for value in row):
            raise ValueError("proportions that no prompts teach")
        if not all(variance[i][i] > 0.0 for i in range(_N)):
            raise ValueError("proportions that no prompts teach")
        proportions = cls(mean)
        proportions.variance = [list(row) for row in variance]
        return proportions

    def tokens(self, parts: Sequence[float]) -> float:
        """The parts by these proportions, together."""
        return sum([factor * part for factor, part in zip(self.mean, parts, strict=True)])

    def sigma(self, parts: Sequence[float]) -> float:
        """Standard deviation of `tokens`, in tokens: wide for parts that no prompt has taught yet."""
        rows = [sum([v * part for v, part in zip(row, parts, strict=True)]) for row in self.variance]
        return sqrt(max(0.0, sum([row * part for row, part in zip(rows, parts, strict=True)])))

    def untaught(self) -> list[float]:
        """By part, the share (0 to 1) of what was unsure of it at first that prompts have not settled yet."""
        return [min(1.0, sqrt(max(0.0, row[i]) / _PRIOR[i][i])) for i, row in enumerate(self.variance)]

    def learn(self, parts: Sequence[float], exact: float, noise: float) -> None:
        """Move towards an exact count of a prompt with these parts. `noise`: its standard deviation, in tokens."""
        gain = [sum([v * part for v, part in zip(row, parts, strict=True)]) for row in self.variance]
        spread = sum([g * part for g, part in zip(gain, parts, strict=True)]) + noise * noise
        error = exact - self.tokens(parts)
        most = _ODD * sqrt(spread)
        error = max(-most, min(most, error))
        for i, row in enumerate(self.variance):
            share = gain[i] / spread
            self.mean[i] = max(_LEAST, min(_MOST, self.mean[i] + share * error))
            prior = _PRIOR[i]
            for j in range(_N):
                row[j] += _DRIFT * (prior[j] - row[j]) - share * gain[j]
