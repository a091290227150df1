"""Who of the waiting may start now: the queue and a snapshot become decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gateway.core.admission import is_aged, refuse, with_admitted, with_awaited, with_claim
from gateway.core.decide import decide
from gateway.core.decision import Candidate, Decision, Verdict
from gateway.core.plan import Plan
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.core.scheduling import RETRY_DEFAULT, retry_after
from gateway.core.snapshot import Snapshot

__all__ = ["pump"]

_FULL = frozenset((Reason.SLOTS_FULL, Reason.TPOT_LIMIT, Reason.LEARNED_LIMIT, Reason.PREFILL_BACKLOG))
"""Closed to requests of any size."""
_AWAY = frozenset(
    (Reason.NOT_SERVED, Reason.DOWN, Reason.LOADING, Reason.DRAINING, Reason.BREAKER_OPEN, Reason.RESTING)
)
"""Closed to this model for now, whoever asks."""
_FOLLOWERS = 4
"""Of the requests that wait for one prefix, so many are decided upon in one look: the others fare like them."""


def pump(
    plan: Plan,
    queue: Iterable[Request],
    snapshot: Snapshot,
    now: float,
    roll: Callable[[], float] | Iterable[float],
    refresh: Callable[[Request], Request] | None = None,
    skip: Callable[[str], None] | None = None,
    taken: Callable[[Request, Decision], None] | None = None,
) -> list[Decision]:
    """Decide upon the waiting requests, in the order given, each on the snapshot that the ones before it leave behind.

    Returns one decision for each request looked at: ADMIT, WAIT, REJECT when nothing that works could ever serve it or,
    on a route that sheds, in time; SHED when its time is up. For each model the scan ends once `queue.scan` requests
    have to wait, or when every backend is closed whatever is asked of it; time-outs are found behind that too. What
    needs more KV cache than was found to be free anywhere waits without being weighed. Those that wait for a prefix
    which is being read for another request don't count, and but a few are weighed: however many follow one leader, the
    scan goes on.

    One that chooses to wait for a full backend is before those behind it there, so a crowd doesn't wait for one place.

    A request that waited longer than `queue.aging` and finds no room sets room aside on the backend that suits it best,
    so smaller ones behind it can't take what becomes free: no request starves. `roll`: a number in [0, 1) for each
    decision. `refresh` brings a request up to date just before it is decided upon: in a long queue most are not.
    `skip` is told the name of a model of which no further request will be looked at, `taken` each admission before the
    next request is brought up to date.
    """
    draw = roll if callable(roll) else iter(roll).__next__
    waiting: dict[str, int] = {}
    room: dict[str, float] = {}
    followers: dict[float, int] = {}
    decisions: list[Decision] = []
    for request in queue:
        if now >= request.deadline:
            chance = draw()
            again = retry_after(RETRY_DEFAULT, 1.0, chance)
            decisions.append(refuse(request, Reason.QUEUE_TIMEOUT, now, chance, again, queued=True))
            continue
        model = request.model
        passed = waiting.get(model, 0)
        if passed >= plan.queue.scan:
            continue
        if refresh is not None:
            request = refresh(request)
        aged = is_aged(plan, request, now)
        leader = None if aged else _leader(request)
        followed = followers.get(leader, 0) if leader is not None else 0
        if followed >= _FOLLOWERS or (model in room and not aged and _least(request) > room[model]):
            decision = Decision(request.id, Verdict.WAIT, Reason.QUEUED, now, draw())
        else:
            decision = decide(plan, request, snapshot, now, draw())
        if decision.verdict is Verdict.ADMIT:
            snapshot = with_admitted(snapshot, decision)
            if taken is not None:
                taken(request, decision)
        elif decision.verdict is Verdict.WAIT:
            if leader is not None and (followed >= _FOLLOWERS or _follows(decision)):
                followers[leader] = followed + 1
            else:
                passed += 1
            if decision.reason is Reason.WORTH_WAITING:
                snapshot = _with_one_more(snapshot, decision)
            if decision.reason is Reason.QUEUED:
                found = _room(request, decision)
                if found is not None:
                    room[model] = found
                    if found == 0.0:
                        passed = plan.queue.scan
                if aged:
                    claimed = _preferred(decision.trace.candidates)
                    if claimed is not None and claimed.footprint is not None:
                        snapshot = with_claim(snapshot, claimed.backend, claimed.footprint, claimed.model)
            waiting[model] = passed
            if skip is not None and passed >= plan.queue.scan:
                skip(model)
        decisions.append(decision)
    return decisions


def _room(request: Request, decision: Decision) -> float | None:
    """Tokens of KV cache that the roomiest backend still has for anybody; 0 when each is closed whatever is asked.

    None where this decision doesn't tell: a backend was left out that might serve the next request, or there are
    fallbacks, which another one may go to.
    """
    if len(request.estimates) != 1:
        return None
    most, live = 0.0, False
    for reason, limit in decision.trace.limits:
        if reason is Reason.KV_FULL:
            live, most = True, max(most, limit or 0.0)
        elif reason in _FULL:
            live = True
        elif reason not in _AWAY:
            return None
    return most if live else None


def _with_one_more(snapshot: Snapshot, decision: Decision) -> Snapshot:
    """Those behind it see that it waits for the backend that suits it best; not if it waits for a prefix to be read."""
    chosen = _preferred(decision.trace.candidates)
    if chosen is None or chosen.footprint is None or chosen.reason is Reason.PREFIX_IN_PREFILL:
        return snapshot
    return with_awaited(snapshot, chosen.backend, chosen.footprint, chosen.model)


def _leader(request: Request) -> float | None:
    """When the first prefix that it may wait for should be there, which tells them apart; None: there is none."""
    return min((hit.ready for hit in request.hits.values() if hit.pending), default=None)


def _follows(decision: Decision) -> bool:
    """Whether it waits for a prefix that is being read."""
    return any(reason is Reason.PREFIX_IN_PREFILL for reason, _ in decision.trace.limits)


def _least(request: Request) -> float:
    """Tokens of KV cache that a request needs at least, wherever it goes: what of its prompt no running one holds."""
    estimate = next(iter(request.estimates.values()))
    pinned = max((hit.pinned for hit in request.hits.values()), default=0.0)
    return estimate.prompt_low - pinned * estimate.prompt


def _preferred(candidates: Iterable[Candidate]) -> Candidate | None:
    """The cheapest of the backends that are merely full."""
    full = [(candidate.total, candidate.backend, candidate) for candidate in candidates if candidate.total is not None]
    return min(full)[2] if full else None
