"""The seconds by which the latency goals would be missed."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.weighing import Weighing

__all__ = ["DeadlineRisk"]


@dataclass(frozen=True, slots=True)
class DeadlineRisk:
    """Seconds over the route's TTFT goal (time already waited included) and over its TPOT goal, weighted by 3."""

    weight: float = 3.0

    @property
    def name(self) -> str:
        """What the trace calls it."""
        return "deadline_risk"

    def seconds(self, weighing: Weighing) -> float:
        """0 within the goals, and on a route that has none."""
        ask = weighing.ask
        route = ask.route
        missed = 0.0
        if ask.goal is not None:
            late = ask.waited + weighing.ttft - ask.goal
            if late > 0.0:
                missed = late
        if route.tpot is not None:
            slow = weighing.tpot - route.tpot
            if slow > 0.0:
                missed += weighing.demand.output_mean * slow
        return self.weight * missed
