"""Whether a request that gets no first token is sent to a second backend beside the first (algorithms: hedging).

Off unless the policy says so. Only where it costs little: fewer than 2,048 tokens to read there, a fleet that is less
than 0.7 busy, class `interactive`, and a share of all requests that the policy bounds.
"""

from __future__ import annotations

from gateway.core.decision import Decision, Verdict
from gateway.core.request import Request
from gateway.core.snapshot import Health, Snapshot

__all__ = ["HedgeBudget", "busy_share", "late_after", "may_hedge"]

LEAST = 1.5
"""Seconds of silence below which nobody is hedged."""
LATE = 3.0
"""Times the predicted time to the first token that count as late; predictions are off by less in all but a few."""
READS = 2048
"""Tokens that the second backend may have to read."""
BUSY = 0.7
CLASS = "interactive"
_SAVED = 3.0
"""Hedges that may be saved up."""
_WORKING = (Health.UP, Health.TRIAL)


class HedgeBudget:
    """A share of the requests that are sent: each of them adds `share`, a hedge takes 1. Starts empty."""

    __slots__ = ("_saved", "share")

    def __init__(self, share: float) -> None:
        self.share = share
        self._saved = 0.0

    def admitted(self) -> None:
        """A request was sent for the first time."""
        self._saved = min(_SAVED, self._saved + self.share)

    def take(self) -> bool:
        """Pay for a hedge; False when there is nothing left for one."""
        if self.share <= 0.0 or self._saved < 1.0:
            return False
        self._saved -= 1.0
        return True


def late_after(request: Request, decision: Decision, share: float) -> float | None:
    """Seconds after which a silent attempt may be hedged; None: never.

    Only streams that nothing was shown of, at their first attempt: of a whole answer the first byte is the last.
    """
    if share <= 0.0 or not request.stream or request.n > 1 or request.attempt or request.klass != CLASS:
        return None
    return max(LEAST, LATE * (decision.predicted_ttft or 0.0))


def may_hedge(second: Decision, snapshot: Snapshot, waiting: int) -> bool:
    """Rule on a second attempt that would be placed so; `waiting` requests have no place at all."""
    if second.verdict is not Verdict.ADMIT or second.tier or second.footprint is None or waiting:
        return False
    return second.footprint.uncached < READS and busy_share(snapshot, second.model or "") < BUSY


def busy_share(snapshot: Snapshot, model: str) -> float:
    """Sequences that run on the working backends of a model, as a share of those that may; 1 where none works."""
    views = [view for view in snapshot.views if view.health in _WORKING and view.offer(model) is not None]
    slots = sum(view.slots for view in views)
    return sum(view.running for view in views) / slots if slots else 1.0
