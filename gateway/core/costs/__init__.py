"""What a choice costs, one file a term, all in seconds: they add up without weights to tune for each workload."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from gateway.core.costs.completion_time import CompletionTime
from gateway.core.costs.deadline_risk import DeadlineRisk
from gateway.core.costs.eviction import Eviction
from gateway.core.costs.harm_to_others import HarmToOthers
from gateway.core.costs.move_penalty import MovePenalty
from gateway.core.costs.overflow_risk import OverflowRisk
from gateway.core.plan import RoutingCosts
from gateway.core.weighing import Weighing

__all__ = ["Cost", "costs_of"]


class Cost(Protocol):
    """One term."""

    @property
    def name(self) -> str:
        """What the trace calls it."""
        ...

    def seconds(self, weighing: Weighing) -> float:
        """Seconds that this candidate costs by this term; 0 or more."""
        ...


@lru_cache(maxsize=64)
def costs_of(weights: RoutingCosts) -> tuple[tuple[str, Callable[[Weighing], float]], ...]:
    """The terms of one policy, as what the trace calls them and the function that gives their seconds."""
    terms: tuple[Cost, ...] = (
        CompletionTime(),
        HarmToOthers(weights.harm),
        DeadlineRisk(weights.deadline),
        MovePenalty(weights.move_share, weights.move_floor),
        OverflowRisk(),
        Eviction(),
    )
    return tuple((term.name, term.seconds) for term in terms)
