"""A prompt that would hold up those who decode there for longer than the route's time per output token allows."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.account import PRESSURE_TAU
from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["KeepsPace"]


@dataclass(frozen=True, slots=True)
class KeepsPace:
    """Bounds the share of prefill in what a backend does, where a goal for decoding is set and somebody decodes there.

    While a share rho of the last 20 s went into prompts, steps of t seconds come every t / (1 - rho), so prompts may
    take 1 - t / goal of the time (algorithms 4.2). The cap on the batch keeps the step itself short; this keeps steps
    coming. A request that waited for longer than the aging limit is let in.
    """

    def check(self, candidate: Weighing) -> Reason | None:
        """DECODE_PACE, in seconds of prefill within 20 s, or None."""
        ask, view = candidate.ask, candidate.view
        goal = ask.route.tpot
        if goal is None or not view.decoding or ask.aged:
            return None
        allowed = PRESSURE_TAU * (1.0 - candidate.step / goal)
        asked = view.prefill_pressure + candidate.prefill
        if asked <= allowed:
            return None
        candidate.limit, candidate.needed = max(0.0, allowed), asked
        return Reason.DECODE_PACE
