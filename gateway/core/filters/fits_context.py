"""The prompt fits the context window, with room for a short answer."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["FitsContext"]


@dataclass(frozen=True, slots=True)
class FitsContext:
    """Refuses only what is too long even if the estimate is too high; in between, the engine says so exactly.

    A route with `fit: refuse` also counts the output that the client asked for.
    """

    def check(self, candidate: Weighing) -> Reason | None:
        """WINDOW_TOO_SMALL, in tokens, or None; notes the demand."""
        ask = candidate.ask
        demand = candidate.demand = ask.demands.on(candidate.view, candidate.offer)
        output = demand.floor
        if ask.route.fit == "refuse" and ask.request.max_tokens is not None:
            asked, ceiling = ask.request.max_tokens, ask.route.output_ceiling
            output = asked if ceiling is None else min(asked, ceiling)
        if demand.low + output <= demand.window:
            return None
        candidate.limit = demand.window
        candidate.needed = demand.estimate.prompt + output
        return Reason.WINDOW_TOO_SMALL
