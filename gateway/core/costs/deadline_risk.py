"""The seconds by which the latency goals would be missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.core.weighing import Weighing

__all__ = ["DeadlineRisk"]


@dataclass(frozen=True, slots=True)
class DeadlineRisk:
    """Seconds over the route's TTFT goal (time already waited included) and over its TPOT goal, weighted by 3."""

    weight: float = 3.0
    name: ClassVar[str] = "deadline_risk"

    def seconds(self, weighing: Weighing) -> float:
        """0 within the goals, and on a route that has none."""
        ask = weighing.ask
        route = ask.route
        if route.ttft is None and route.tpot is None:
            return 0.0
        missed = 0.0
        if route.ttft is not None:
            missed = max(0.0, ask.waited + weighing.ttft - route.ttft)
        if route.tpot is not None:
            missed += weighing.footprint.output_mean * max(0.0, weighing.tpot - route.tpot)
        return self.weight * missed
