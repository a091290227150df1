"""What is seen of a member now, put together for the rules that name a cause."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.core.degrading.condition import common
from gateway.core.degrading.phase import Phase
from gateway.core.degrading.signs import Signs
from gateway.core.ledger import Totals
from gateway.core.snapshot import Health
from gateway.core.weighing import RHO_TAU
from gateway.fleet.member import Member

__all__ = ["signs_of"]


def signs_of(member: Member, peers: Iterable[Member], totals: Totals, now: float) -> Signs:
    """The signs of a backend; `peers` are others that serve one of its models. Seconds on the monotonic clock."""
    load, pool, observer = member.told(now), member.capacity.pool_tokens, member.observer
    condition = member.condition
    conditions = [condition, *(peer.condition for peer in peers)]
    shifts = {phase: common(conditions, phase) for phase in Phase}
    health, _ = member.health_at(now)
    since = member.health_since if member.health is health else None
    return Signs(
        health=health,
        health_s=max(0.0, now - since) if since is not None else 0.0,
        error=member.error if health is not Health.UP else None,
        failure=member.breaker.cause,
        running=max(0, totals.running - totals.lingering),
        silent_s=member.silent_for(now),
        prefill=condition.slowdown(Phase.PREFILL, shifts[Phase.PREFILL]),
        decode=condition.slowdown(Phase.DECODE, shifts[Phase.DECODE]),
        leaning=frozenset(phase for phase in Phase if condition.leaning(phase, shifts[phase])),
        preemptions=condition.preemptions(now),
        memory_errors=condition.memory_errors(now),
        kv_usage=load.kv_usage if load is not None else None,
        waiting=load.waiting if load is not None else None,
        foreign=observer.foreign_tokens(now) / pool if pool else 0.0,
        foreign_running=observer.foreign_running if load is not None else 0,
        busy=totals.prefill_pressure / RHO_TAU,
        devices=member.backend.device.count,
        reading=member.reading(now),
    )
