"""The whole KV pool could hold the request, if it ran alone."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.admission import usable_pool
from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["FitsPool"]


@dataclass(frozen=True, slots=True)
class FitsPool:
    """Refuses what would wait for ever. As with the window, only what is too long on the low side of the estimate."""

    def check(self, candidate: Weighing) -> Reason | None:
        """POOL_TOO_SMALL, in tokens, or None."""
        view = candidate.view
        if view.pool <= 0:
            return None
        demand = candidate.demand
        n = demand.sequences
        prompts = 1 if view.backend.shares_prefix else n
        output = demand.floor * n + demand.beside
        pool = usable_pool(view)
        if demand.low * prompts + output <= pool:
            return None
        candidate.limit = pool
        candidate.needed = demand.estimate.prompt * prompts + output
        return Reason.POOL_TOO_SMALL
