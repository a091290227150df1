"""The price of a window that may turn out too small, for the prompt or for the whole answer."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.weighing import Weighing

__all__ = ["OverflowRisk"]


@dataclass(frozen=True, slots=True)
class OverflowRisk:
    """Prefers a backend where even the high side of the prompt fits, and the expected answer beside it.

    Costs the share of the uncertainty band that lies over the window, plus the share of the answer that would be cut
    off, times `attempt`: the seconds that a refused attempt takes from a client (round trip, error, next try).
    """

    attempt: float = 2.0

    @property
    def name(self) -> str:
        """What the trace calls it."""
        return "overflow_risk"

    def seconds(self, weighing: Weighing) -> float:
        """0 when all of it fits."""
        demand = weighing.demand
        estimate, window, answer = demand.estimate, demand.window, demand.output_mean
        if estimate.prompt_high + answer <= window:
            return 0.0
        risk = 0.0
        over = estimate.prompt_high + demand.floor - window
        if over > 0:
            band = estimate.prompt_high - demand.low
            risk = min(1.0, over / band) if band > 0 else 1.0
        room = max(window - estimate.prompt, 0)
        if room < answer:
            risk += 1.0 - room / answer
        return self.attempt * risk
