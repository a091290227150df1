"""No prompt is read twice at the same time on one backend."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["AwaitedPrefix"]


@dataclass(frozen=True, slots=True)
class AwaitedPrefix:
    """Single-flight (algorithms 3.5): holds a request back while most of its prompt is being read there for another.

    The other is ahead in reading the same, so nothing is lost. Never past its deadline, nor once it has waited for
    longer than the aging limit. Whether another backend would read it sooner is for the costs to say.
    """

    def check(self, candidate: Weighing) -> Reason | None:
        """PREFIX_IN_PREFILL, in seconds, or None."""
        if not candidate.awaited:
            return None
        ask, ready = candidate.ask, candidate.ready
        if ask.aged or ask.now + ready >= ask.request.deadline:
            return None
        candidate.limit, candidate.needed = 0.0, ready
        return Reason.PREFIX_IN_PREFILL
