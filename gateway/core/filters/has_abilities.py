"""The backend has every ability that the request needs (vision, tools, embeddings ...)."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["HasAbilities"]


@dataclass(frozen=True, slots=True)
class HasAbilities:
    """What an operator declares replaces what was detected."""

    def check(self, candidate: Weighing) -> Reason | None:
        """MISSING_ABILITY, with the number of abilities that are there and needed, or None."""
        needs = candidate.ask.request.needs
        if not needs:
            return None
        declared = candidate.view.backend.abilities
        abilities = candidate.offer.abilities if declared is None else declared
        if needs <= abilities:
            return None
        candidate.limit = len(needs & abilities)
        candidate.needed = len(needs)
        return Reason.MISSING_ABILITY
