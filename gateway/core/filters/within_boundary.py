"""The data boundary comes first: nothing else is even looked at for a backend that may not see the data."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.boundary import within
from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["WithinBoundary"]


@dataclass(frozen=True, slots=True)
class WithinBoundary:
    """Drops backends that are cleared for less than the data's label."""

    def check(self, candidate: Weighing) -> Reason | None:
        """OUTSIDE_BOUNDARY, with both labels as numbers, or None."""
        label, clearance = candidate.ask.label, candidate.view.backend.clearance
        if within(label, clearance):
            return None
        candidate.limit = int(clearance)
        candidate.needed = int(label)
        return Reason.OUTSIDE_BOUNDARY
