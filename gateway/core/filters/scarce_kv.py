"""While KV cache is scarce, no long new prompt."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["ScarceKv"]

_RESIDENT = 0.5
"""Part of a prompt that is cached somewhere from which on it is a conversation that goes on, and no new one."""


@dataclass(frozen=True, slots=True)
class ScarceKv:
    """Keeps what is left of the fleet's cache for conversations that are under way (algorithms 2.7).

    A new prompt that wants more than a share of one pool waits; those of spared classes do not, nor one that has waited
    for longer than the aging limit, nor one that finds the backend idle. So it is on a backend that preempts or ran out
    of memory, however much others have left. A conversation is never cut off from its
    cache: that would be read again elsewhere.
    """

    def check(self, candidate: Weighing) -> Reason | None:
        """KV_SCARCE, in tokens, or None."""
        view, ask = candidate.view, candidate.ask
        if view.pool <= 0 or not view.running:
            return None
        allowed = int(view.pool * ask.plan.pressure.context)
        if candidate.kv <= allowed or ask.aged or ask.klass.spared or ask.resident >= _RESIDENT:
            return None
        if not view.strained and not ask.scarce:
            return None
        candidate.limit, candidate.needed = allowed, candidate.kv
        return Reason.KV_SCARCE
