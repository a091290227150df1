"""A slot is free for every choice of the request."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.admission import slots_of
from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["WithinLimit"]


@dataclass(frozen=True, slots=True)
class WithinLimit:
    """Counts choices, not requests. One with more choices than slots runs alone: engines take its choices in turn."""

    def check(self, candidate: Weighing) -> Reason | None:
        """SLOTS_FULL, in sequences, or None."""
        view = candidate.view
        slots = slots_of(view, candidate.ask.plan)
        running = view.running + candidate.ask.request.n
        if running <= slots or (view.running == 0 and slots > 0):
            return None
        candidate.limit = slots
        candidate.needed = running
        return Reason.SLOTS_FULL
