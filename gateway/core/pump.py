"""Who of the waiting may start now: the queue and a snapshot become decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gateway.core.admission import is_aged, refuse, with_admitted, with_claim
from gateway.core.decide import decide
from gateway.core.decision import Candidate, Decision, Verdict
from gateway.core.plan import Plan
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.core.scheduling import RETRY_DEFAULT, retry_after
from gateway.core.snapshot import Snapshot

__all__ = ["pump"]


def pump(
    plan: Plan,
    queue: Iterable[Request],
    snapshot: Snapshot,
    now: float,
    roll: Callable[[], float] | Iterable[float],
    refresh: Callable[[Request], Request] | None = None,
) -> list[Decision]:
    """Decide upon the waiting requests, in the order given, each on the snapshot that the ones before it leave behind.

    Returns one decision for each request looked at: ADMIT, WAIT, REJECT when nothing that works could ever serve it, or
    SHED when its time is up. For each model the scan ends once `queue.scan` requests have to wait; time-outs are found
    behind that too.

    A request that waited longer than `queue.aging` and finds no room sets room aside on the backend that suits it best,
    so smaller ones behind it can't take what becomes free: no request starves. `roll`: a number in [0, 1) for each
    decision. `refresh` brings a request up to date just before it is decided upon: in a long queue most are not.
    """
    draw = roll if callable(roll) else iter(roll).__next__
    waiting: dict[str, int] = {}
    decisions: list[Decision] = []
    for request in queue:
        if now >= request.deadline:
            chance = draw()
            again = retry_after(RETRY_DEFAULT, 1.0, chance)
            decisions.append(refuse(request, Reason.QUEUE_TIMEOUT, now, chance, again, queued=True))
            continue
        passed = waiting.get(request.model, 0)
        if passed >= plan.queue.scan:
            continue
        if refresh is not None:
            request = refresh(request)
        decision = decide(plan, request, snapshot, now, draw())
        if decision.verdict is Verdict.ADMIT:
            snapshot = with_admitted(snapshot, decision)
        elif decision.verdict is Verdict.WAIT:
            waiting[request.model] = passed + 1
            if decision.reason is Reason.QUEUED and is_aged(plan, request, now):
                claimed = _preferred(decision.trace.candidates)
                if claimed is not None and claimed.footprint is not None:
                    snapshot = with_claim(snapshot, claimed.backend, claimed.footprint)
        decisions.append(decision)
    return decisions


def _preferred(candidates: Iterable[Candidate]) -> Candidate | None:
    """The cheapest of the backends that are merely full."""
    full = [(candidate.total, candidate.backend, candidate) for candidate in candidates if candidate.total is not None]
    return min(full)[2] if full else None
