"""Why a request still waits: what the last look at it found, in a few words that cost next to nothing to keep."""

from __future__ import annotations

from typing import NamedTuple

from gateway.core.decision import Decision
from gateway.core.reasons import Reason

__all__ = ["Look"]


class Look(NamedTuple):
    """What was found when a request was told to wait; `at` in seconds on the monotonic clock.

    `backends` pairs each backend that was weighed with the reason why it fell out; None: it was open, and another one
    is worth waiting for. `weighed_at`: when that was. Both are of an earlier look where the last one needed no
    weighing, since the request asks for more KV cache than was found to be free anywhere.
    """

    at: float
    reason: Reason
    backends: tuple[tuple[str, Reason | None], ...] = ()
    weighed_at: float | None = None

    @classmethod
    def of(cls, decision: Decision, before: Look | None = None) -> Look:
        """What a decision to wait says; `before`: what the look before it found."""
        found = tuple(decision.trace.reasons)
        if found or before is None:
            return cls(decision.now, decision.reason, found, decision.now if found else None)
        return cls(decision.now, decision.reason, before.backends, before.weighed_at)

    @property
    def by_backend(self) -> dict[str, Reason | None]:
        """The same by name: of a backend that was weighed for several models, what was found for the first of them."""
        found: dict[str, Reason | None] = {}
        for name, reason in self.backends:
            found.setdefault(name, reason)
        return found
