"""A slot is free for every choice of the request."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.admission import slots_of
from gateway.core.bounds import LimitedBy
from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["WithinLimit"]


_REASONS = {
    LimitedBy.SLOTS: Reason.SLOTS_FULL,
    LimitedBy.TPOT: Reason.TPOT_LIMIT,
    LimitedBy.LEARNED: Reason.LEARNED_LIMIT,
    LimitedBy.RAMP: Reason.SLOTS_FULL,
}


@dataclass(frozen=True, slots=True)
class WithinLimit:
    """Counts choices, not requests. One with more choices than slots runs alone: engines take its choices in turn."""

    def check(self, candidate: Weighing) -> Reason | None:
        """SLOTS_FULL, TPOT_LIMIT or LEARNED_LIMIT, by what bounds it, in sequences; or None."""
        view = candidate.view
        slots = slots_of(view, candidate.ask.plan)
        running = view.running + candidate.ask.request.n
        if running <= slots or (view.running == 0 and slots > 0):
            return None
        candidate.limit = slots
        candidate.needed = running
        return _REASONS[view.limited_by] if slots == view.slots else Reason.SLOTS_FULL
