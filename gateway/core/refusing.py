"""The verdict when no backend works for a request: wait, or the reason for the no."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.core.bounds import Bound
from gateway.core.decision import Decision, Trace, Verdict
from gateway.core.reasons import Reason
from gateway.core.scheduling import next_try
from gateway.core.weighing import Ask, Weighing

__all__ = ["no_backend_left"]


_TOO_SMALL = (Reason.WINDOW_TOO_SMALL, Reason.POOL_TOO_SMALL)
_LATER = (Reason.BREAKER_OPEN, Reason.RESTING, Reason.ALREADY_TRIED)


def no_backend_left(ask: Ask, seen: Sequence[Weighing], trace: Trace, roll: float) -> Decision:
    """Decide when no candidate of any tier is live, by the candidate that came closest.

    A backend that is loading, or which may be sent something again before the request's deadline, is waited for. Else
    the first of: one is merely busy; the ones that could serve it failed it; they are down; all are too small; none has
    the abilities; none speaks the surface; none is cleared.
    """
    request, now = ask.request, ask.now
    reasons = {weighing.reason for weighing in seen}

    def decision(verdict: Verdict, reason: Reason, again: float | None = None) -> Decision:
        return Decision(request.id, verdict, reason, now, roll, retry_after=again, trace=trace)

    # A request that another backend has failed is not held for a trial: what went wrong there is its answer.
    worth_it = _back_by(seen, Reason.BREAKER_OPEN, request.deadline) and not request.tried
    if Reason.LOADING in reasons or worth_it or _back_by(seen, Reason.RESTING, request.deadline):
        return decision(Verdict.WAIT, Reason.QUEUED)
    again = next_try((w.view for w in seen if w.reason in _LATER), now, roll)
    if Reason.RESTING in reasons:
        return decision(Verdict.REJECT, Reason.RESTING, again)
    if Reason.ALREADY_TRIED in reasons:
        return decision(Verdict.REJECT, Reason.RETRIES_SPENT, again)
    if not reasons.isdisjoint((Reason.DOWN, Reason.DRAINING, Reason.BREAKER_OPEN)):
        return decision(Verdict.REJECT, Reason.NO_BACKEND, again)
    largest = max((w for w in seen if w.reason in _TOO_SMALL), key=_limit, default=None)
    if largest is not None:
        told = decision(Verdict.REJECT, Reason.CONTEXT_TOO_LONG)
        told.limit, told.needed = int(largest.limit or 0), int(largest.needed or 0)
        told.bound = largest.demand.bound if largest.reason is Reason.WINDOW_TOO_SMALL else Bound.POOL
        return told
    if Reason.MISSING_ABILITY in reasons:
        return decision(Verdict.REJECT, Reason.MISSING_ABILITY)
    if Reason.NOT_THE_KEEPER in reasons and request.keeper not in {w.view.name for w in seen}:
        return decision(Verdict.REJECT, Reason.NOT_THE_KEEPER)
    if Reason.SURFACE_NOT_OFFERED in reasons:
        return decision(Verdict.REJECT, Reason.SURFACE_NOT_OFFERED)
    if any(w.reason is Reason.OUTSIDE_BOUNDARY and w.view.offer(w.model) is not None for w in seen):
        return decision(Verdict.REJECT, Reason.OUTSIDE_BOUNDARY)
    return decision(Verdict.REJECT, Reason.NO_BACKEND, again)


def _back_by(seen: Sequence[Weighing], reason: Reason, deadline: float) -> bool:
    """Whether a candidate that fell out for `reason` may be sent something again by then."""
    return any(w.reason is reason and w.view.retry_at is not None and w.view.retry_at <= deadline for w in seen)


def _limit(weighing: Weighing) -> float:
    return weighing.limit or 0.0
