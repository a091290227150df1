"""The backend serves this model."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["ServesModel"]


@dataclass(frozen=True, slots=True)
class ServesModel:
    """Finds the offer that the later steps work with."""

    def check(self, candidate: Weighing) -> Reason | None:
        """NOT_SERVED, or None with the offer noted."""
        offer = candidate.view.offer(candidate.model)
        if offer is None:
            return Reason.NOT_SERVED
        candidate.offer = offer
        return None
