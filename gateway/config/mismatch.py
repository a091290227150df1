"""Where an engine's own figures and what was to be expected of it differ: a sign that one of them is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["LARGE", "Mismatch", "worst"]

LARGE = 0.10
"""Difference, as a share of what was expected, that people are told of."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One figure. `expected` is `by` arithmetic or the file; `causes` are the likely ones, likeliest first."""

    fact: str
    told: float
    expected: float
    unit: str
    by: str
    causes: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """How much more the engine tells than was expected, as a share of that: 0 is agreement, -0.5 half."""
        return self.told / self.expected - 1.0

    @property
    def is_large(self) -> bool:
        """Whether people should look at it."""
        return abs(self.ratio) > LARGE

    def as_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "fact": self.fact,
            "engine": self.told,
            "expected": self.expected,
            "unit": self.unit,
            "by": self.by,
            "ratio": round(self.ratio, 4),
            "causes": list(self.causes),
        }

    def __str__(self) -> str:
        """In a sentence: both figures, the difference, and what may be behind it."""
        told, expected = (f"{_number(value)} {self.unit}".strip() for value in (self.told, self.expected))
        text = f"{self.fact}: {told} by the engine, {expected} by {self.by} ({self.ratio:+.0%})"
        return text + (f"; likely {', or '.join(self.causes)}" if self.causes else "")


def worst(found: Iterable[Mismatch]) -> Mismatch | None:
    """The largest of them, whatever its sign; None where nothing could be compared."""
    return max(found, key=lambda one: abs(one.ratio), default=None)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
