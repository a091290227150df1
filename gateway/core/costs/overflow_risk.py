"""The price of a prompt that may turn out longer than the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.core.weighing import Weighing

__all__ = ["OverflowRisk"]


@dataclass(frozen=True, slots=True)
class OverflowRisk:
    """Prefers a backend where even the high side of the estimate fits.

    Costs the share of the uncertainty band that lies over the window times `attempt`, the seconds that a refused
    attempt takes from a client (round trip, error, next try).
    """

    attempt: float = 2.0
    name: ClassVar[str] = "overflow_risk"

    def seconds(self, weighing: Weighing) -> float:
        """0 when the high side fits."""
        estimate = weighing.estimate
        over = estimate.prompt_high + weighing.floor - weighing.window
        if over <= 0:
            return 0.0
        band = estimate.prompt_high - weighing.low
        return self.attempt * (min(1.0, over / band) if band > 0 else 1.0)
