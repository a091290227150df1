"""Which backend, and whether now: one function over one snapshot, for the live gateway, replay and simulation alike."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.core.admission import refuse
from gateway.core.choosing import cheapest, choose, worth_waiting
from gateway.core.costs import costs_of
from gateway.core.decision import Decision, Trace, Verdict
from gateway.core.fallback import tiers
from gateway.core.filters import ABLE, ROOM, WORKING
from gateway.core.plan import Plan
from gateway.core.reasons import Reason
from gateway.core.refusing import no_backend_left
from gateway.core.request import Request
from gateway.core.scheduling import retry_after, too_late, wait_for_room
from gateway.core.snapshot import BackendView, Snapshot
from gateway.core.weighing import Ask, Costs, Weighing

__all__ = ["decide"]

# Looked up once: a decision calls these for each backend.
_LIVE_CHECKS = tuple(rule.check for rule in (*ABLE, *WORKING))
_ROOM_CHECKS = tuple(rule.check for rule in ROOM)


def decide(plan: Plan, request: Request, snapshot: Snapshot, now: float, roll: float) -> Decision:
    """Decide upon one request: ADMIT on a backend, WAIT, or REJECT. Pure: the same arguments give the same decision.

    `now` in seconds on the snapshot's clock; `roll` in [0, 1) breaks ties and spreads retries.

    Models are looked at in tiers: the one asked for, then fallbacks with consent. A later tier serves only when no
    backend of the earlier ones works: being full is no reason to answer with another model. Among the open backends of
    a tier the one that costs fewest seconds wins, unless a full one would still be better: then the request waits for
    it (delay scheduling).
    """
    route = plan.route(request.model, snapshot)
    if route is None:
        return refuse(request, Reason.UNKNOWN_MODEL, now, roll)
    ask = Ask(plan, request, route, now, snapshot.views)
    costs = costs_of(plan.costs)
    seen: list[Weighing] = []
    for tier, model in enumerate(tiers(route, request)):
        weighed = [_weigh(ask, view, model, tier, costs) for view in snapshot.views]
        seen += weighed
        live = [weighing for weighing in weighed if weighing.live]
        if live:
            return _place(ask, live, Trace([*seen]), roll)
    return no_backend_left(ask, seen, Trace([*seen]), roll)


def _weigh(ask: Ask, view: BackendView, model: str, tier: int, costs: Costs) -> Weighing:
    """Pass one backend through the filters; if it works, price it, even if it is full now."""
    weighing = Weighing(ask, view, model, tier)
    for check in _LIVE_CHECKS:
        reason = check(weighing)
        if reason is not None:
            weighing.reason = reason
            return weighing
    weighing.live = True
    weighing.fit()
    weighing.measure()
    for check in _ROOM_CHECKS:
        reason = check(weighing)
        if reason is not None:
            weighing.reason = reason
            limit, needed = weighing.limit or 0.0, weighing.needed or 0.0
            service = weighing.demand.output_mean * weighing.tpot
            weighing.open_after(wait_for_room(view, reason, limit, needed, service))
            break
    weighing.price(costs)
    return weighing


def _place(ask: Ask, live: Sequence[Weighing], trace: Trace, roll: float) -> Decision:
    """Admit on the best open backend, or wait for a better one."""
    request, now = ask.request, ask.now
    if ask.route.sheds and ask.klass.sheddable and (late := _late(ask, live)) > 0.0:
        again = retry_after(late, 1.0, roll)
        return Decision(request.id, Verdict.REJECT, Reason.DEADLINE, now, roll, retry_after=again, trace=trace)
    open_ = [weighing for weighing in live if weighing.reason is None]
    if not open_:
        wait = min(weighing.wait for weighing in live)
        if ask.klass.sheddable and too_late(wait, request.deadline - now):
            again = retry_after(wait, 1.0, roll)
            return Decision(request.id, Verdict.REJECT, Reason.DEADLINE, now, roll, retry_after=again, trace=trace)
        return Decision(request.id, Verdict.WAIT, Reason.QUEUED, now, roll, trace=trace)
    best = cheapest(live)
    best_open = best if best.reason is None else cheapest(open_)
    if best_open is not best and worth_waiting(ask, best, best_open):
        return Decision(request.id, Verdict.WAIT, Reason.WORTH_WAITING, now, roll, trace=trace)
    chosen = choose(open_, best_open, roll)
    offer = chosen.offer
    return Decision(
        request.id,
        Verdict.ADMIT,
        Reason.ADMITTED,
        now,
        roll,
        backend=chosen.view.backend.name,
        model=offer.model,
        served_as=offer.served_as,
        tier=chosen.tier,
        footprint=chosen.footprint,
        predicted_ttft=chosen.ttft,
        predicted_prefill=chosen.prefill,
        predicted_tpot=chosen.pace,
        trace=trace,
    )


def _late(ask: Ask, live: Sequence[Weighing]) -> float:
    """Seconds by which the first token misses the route's goal wherever the request goes; 0 when it may keep it.

    What began to be answered elsewhere is not turned away.
    """
    if ask.goal is None or ask.request.resumed:
        return 0.0
    return ask.waited + min([weighing.ttft for weighing in live]) - ask.goal
