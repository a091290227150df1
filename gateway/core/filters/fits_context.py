"""The prompt fits the context window, with room for a short answer."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.reserving import estimate_of, window_of
from gateway.core.weighing import Weighing

__all__ = ["FitsContext"]


@dataclass(frozen=True, slots=True)
class FitsContext:
    """Refuses only what is too long even if the estimate is too high; in between, the engine says so exactly.

    A route with `fit: refuse` also counts the output that the client asked for.
    """

    def check(self, candidate: Weighing) -> Reason | None:
        """WINDOW_TOO_SMALL, in tokens, or None; notes estimate, window, low side and floor."""
        ask = candidate.ask
        request, route = ask.request, ask.route
        offer = candidate.offer
        estimate = candidate.estimate = request.estimates.get(offer.model) or estimate_of(request, offer)
        window = candidate.window = window_of(candidate.view, offer, route, ask.plan)
        low, output = candidate.low, candidate.floor = ask.sides(estimate)
        if route.fit == "refuse" and request.max_tokens is not None:
            ceiling = route.output_ceiling
            output = request.max_tokens if ceiling is None else min(request.max_tokens, ceiling)
        if low + output <= window:
            return None
        candidate.limit = window
        candidate.needed = estimate.prompt + output
        return Reason.WINDOW_TOO_SMALL
