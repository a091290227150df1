"""Room on a backend: what it may hold, and how a snapshot looks after one more request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import trunc

from gateway.core.decision import Decision, Verdict
from gateway.core.footprint import Footprint
from gateway.core.ledger import Limits
from gateway.core.plan import ClassPolicy, Plan
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.core.snapshot import BackendView, Health, Snapshot

__all__ = [
    "class_named", "class_of", "is_aged", "is_scarce", "kv_limit", "limits_of", "refuse", "slots_of", "usable_pool",
    "with_admitted", "with_claim",
]  # fmt: skip

_DEFAULT_CLASS = ClassPolicy("default")
_TRIAL = Health.TRIAL  # read for each backend, and reading a member of an enum calls a function up to Python 3.11


def class_of(plan: Plan, request: Request) -> ClassPolicy:
    """The policy of the request's class; that of `default` when its class is not configured."""
    return class_named(plan, request.klass)


def class_named(plan: Plan, name: str) -> ClassPolicy:
    """The policy of the class of that name; that of `default` when it is not configured."""
    return plan.classes.get(name) or plan.classes.get("default") or _DEFAULT_CLASS


def is_aged(plan: Plan, request: Request, now: float) -> bool:
    """Say whether it has waited so long that no class ceiling holds it back and nothing smaller overtakes it."""
    return now - request.arrival > plan.queue.aging


def usable_pool(view: BackendView) -> int:
    """Tokens of the pool in whole blocks."""
    return view.pool - view.pool % view.block


def kv_limit(view: BackendView, ceiling: float = 1.0) -> int:
    """Tokens that our leases may hold together, for a class with this ceiling.

    The headroom keeps engines from preempting; a request that finds the backend idle may use all of it, since nobody is
    there to be preempted.
    """
    if view.running:
        return trunc(view.pool * view.headroom * ceiling) - view.foreign
    return usable_pool(view) - view.foreign


def slots_of(view: BackendView, plan: Plan) -> int:
    """Sequences that may run: the engine's slots, but a few only while a backend is on trial."""
    return view.slots if view.health is not _TRIAL else min(view.slots, plan.breaker.trials)


def is_scarce(plan: Plan, views: Iterable[BackendView], model: str) -> bool:
    """Say whether the backends that work and serve a model have less KV cache left together than the policy wants."""
    pool = free = 0
    for view in views:
        if view.pool > 0 and view.health is Health.UP and view.offer(model) is not None:
            pool += view.pool
            free += view.free
    return free < plan.pressure.free * pool


def limits_of(view: BackendView, plan: Plan, request: Request, now: float) -> Limits:
    """The limits under which the ledger may enter this request: the same that its decision was made under."""
    ceiling = 1.0 if is_aged(plan, request, now) else class_of(plan, request).kv_ceiling
    slots = slots_of(view, plan)
    if view.pool <= 0:
        return Limits(None, None, slots, view.backend.queued_prefill)
    shared = int(view.pool * view.headroom * ceiling) - view.foreign
    return Limits(shared, usable_pool(view) - view.foreign, slots, view.backend.queued_prefill)


def with_admitted(snapshot: Snapshot, decision: Decision) -> Snapshot:
    """The snapshot after this admission; unchanged when it is none or its backend is gone."""
    if decision.verdict is not Verdict.ADMIT or decision.backend is None or decision.footprint is None:
        return snapshot
    view = snapshot.view(decision.backend)
    if view is None:
        return snapshot
    footprint, prefill = decision.footprint, decision.predicted_prefill
    return snapshot.with_view(
        replace(
            view,
            busy_with=decision.model,
            running=view.running + footprint.sequences,
            reserved=view.reserved + footprint.kv,
            backlog=view.backlog + prefill,
            prefill_pressure=view.prefill_pressure + prefill,
        )
    )


def with_claim(snapshot: Snapshot, backend: str, footprint: Footprint, model: str) -> Snapshot:
    """The snapshot with room set aside on a backend, so that those who are looked at later leave it free.

    One that holds a single model is kept for that `model`: once what runs there has ended, it is swapped in.
    """
    view = snapshot.view(backend)
    if view is None:
        return snapshot
    return snapshot.with_view(
        replace(
            view, busy_with=model, running=view.running + footprint.sequences, reserved=view.reserved + footprint.kv
        )
    )


def with_awaited(snapshot: Snapshot, backend: str, footprint: Footprint, model: str) -> Snapshot:
    """The snapshot after a request chose to wait for that backend: who comes later and waits there waits behind it."""
    view = snapshot.view(backend)
    offer = view.offer(model) if view is not None else None
    if view is None or offer is None:
        return snapshot
    seconds = offer.speed.prefill_seconds(footprint.uncached, footprint.cached) * view.prefill_factor
    return snapshot.with_view(
        replace(
            view,
            awaited=view.awaited + footprint.sequences,
            awaited_kv=view.awaited_kv + footprint.kv,
            awaited_prefill=view.awaited_prefill + seconds,
        )
    )


def refuse(
    request: Request, reason: Reason, now: float, roll: float, retry_after: float | None = None, *, queued: bool = False
) -> Decision:
    """A decision of no that needed no look at the fleet: a full queue, a quota, a shutdown."""
    verdict = Verdict.SHED if queued else Verdict.REJECT
    return Decision(request.id, verdict, reason, now, roll, retry_after=retry_after)
