"""`GET /admin/backends`: every backend as it stands, and what of ours runs there. Tokens and seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.core.degrading.causes import ADVICE, SENTENCES, Cause
from gateway.core.lease import Lease
from gateway.core.look import Look
from gateway.core.request import Request
from gateway.core.snapshot import BackendView, Snapshot
from gateway.edge.lease_view import lease_row
from gateway.fleet.leases import Leases
from gateway.fleet.member import Member

__all__ = ["LEASES", "backend_rows", "waiting_for"]

LEASES = 64
"""Leases that are listed of one backend, oldest first."""


def backend_rows(
    snapshot: Snapshot, leases: Leases, waiting: Mapping[str, Mapping[str, int]] | None = None
) -> list[dict[str, Any]]:
    """One mapping a backend, JSON-ready. `waiting`: by backend, how many wait for what reason (`waiting_for`)."""
    open_on: dict[str, list[Lease]] = {}
    for lease in leases.open:
        open_on.setdefault(lease.backend, []).append(lease)
    return [
        _row(view, snapshot.now, leases, open_on.get(view.name, []))
        | {"waiting_for": (waiting or {}).get(view.name, {})}
        for view in snapshot.views
    ]


def waiting_for(waiters: Iterable[tuple[Request, Look | None]]) -> dict[str, dict[str, int]]:
    """By backend and reason, how many of these requests, in their order, don't go there.

    One that was not looked at waits for what the one before it waits for: looking ends where nobody has room.
    """
    found: dict[str, Counter[str]] = {}
    last: dict[str, Look] = {}
    for request, seen in waiters:
        look = seen or last.get(request.model)
        if look is not None:
            last[request.model] = look
            for name, reason in look.by_backend.items():
                if reason is not None:
                    found.setdefault(name, Counter())[str(reason)] += 1
    return {name: dict(counts.most_common()) for name, counts in found.items()}


def _row(view: BackendView, now: float, leases: Leases, open_on: list[Lease]) -> dict[str, Any]:
    backend, member = view.backend, leases.roster.get(view.name)
    work = leases.open.work(view.name)
    row: dict[str, Any] = {
        "name": view.name,
        "health": str(view.health),
        "state": str(view.health),
        "retry_in_seconds": _seconds(view.retry_at - now) if view.retry_at is not None else None,
        "engine": backend.engine,
        "device": backend.device.id,
        "off_premises": backend.off_premises,
        "clearance": backend.clearance.name.lower(),
        "models": [
            {"id": offer.model, "served_as": offer.served_as, "window": offer.window, "sources": dict(offer.sources)}
            for offer in view.offers
        ],
        "running": view.running,
        "slots": view.slots,
        "limited_by": str(view.limited_by),
        "decoding": view.decoding,
        "lingering": leases.totals(view.name).lingering,
        "overcommitted": view.overcommitted,
        "kv_reserved_tokens": view.reserved,
        "kv_foreign_tokens": view.foreign,
        "kv_free_tokens": max(0, view.free) if view.pool else None,
        "kv_pool_tokens": view.pool,
        "kv_headroom": round(view.headroom, 4),
        "kv_block_tokens": view.block,
        "kv_sequence_tokens": view.charge.most,
        "resident_tokens": view.resident,
        "prefill_backlog_seconds": round(view.backlog, 3),
        "prefill_backlog_limit_seconds": backend.queued_prefill,
        "prefill_factor": round(view.prefill_factor, 3),
        "decode_factor": round(view.decode_factor, 3),
        "requests_ended": work.ended,
        "prefilled_tokens": work.prefilled,
        "generated_tokens": work.generated,
        "leases": [lease_row(lease, now) for lease in open_on[:LEASES]],
        "leases_left_out": max(0, len(open_on) - LEASES),
    }
    return row | _found(member, now) if member is not None else row


def _found(member: Member, now: float) -> dict[str, Any]:
    """What probes and the engine's own reports said."""
    seen, since = member.observer, member.health_since
    load = seen.load
    return {
        "health_since_seconds": _seconds(now - since) if since is not None else None,
        "error": member.error,
        "kept_from_new_requests": member.cordoned,
        "cause": _cause(member, now),
        "device_reports": _devices(member, now),
        "engine_slots": member.capacity.slots,
        "sample_age_seconds": _seconds(now - seen.sampled_at) if seen.sampled_at is not None else None,
        "engine_reports": {
            "running": load.running,
            "waiting": load.waiting,
            "kv_usage": round(load.kv_usage, 4) if load.kv_usage is not None else None,
        }
        if load is not None
        else None,
        "foreign_running": seen.foreign_running,
        "foreign_waiting": seen.waits_inside(now),
        "preemptions": seen.preemptions,
        "capacity_sources": dict(member.capacity.sources),
        "notes": [*member.doubts, *(member.facts.notes if member.facts is not None else ())],
        "mismatches": [one.as_json() for one in member.mismatches if one.is_large],
    }


def _devices(member: Member, now: float) -> dict[str, Any] | None:
    """What its devices say of themselves; what they don't say is null. None without telemetry."""
    watch = member.devices
    if watch is None:
        return None
    reading = member.reading(now)
    if reading is None:
        stale = {"age_seconds": _seconds(now - watch.reading.at)} if watch.reading is not None else {}
        return stale | {"trouble": watch.trouble}
    return reading.as_json() | {"age_seconds": _seconds(now - reading.at), "trouble": watch.trouble}


def _cause(member: Member, now: float) -> dict[str, Any] | None:
    """What is wrong with it, how that is known, and what to try; None while nothing is."""
    condition = member.condition
    verdict = condition.verdict
    if verdict.cause is Cause.NONE:
        return None
    return {
        "name": str(verdict.cause),
        "sentence": SENTENCES[verdict.cause],
        "since_seconds": _seconds(now - condition.since) if condition.since is not None else None,
        "evidence": list(verdict.evidence),
        "runner_up": str(verdict.runner_up) if verdict.runner_up is not None else None,
        "advice": ADVICE[verdict.cause],
    }


def _seconds(value: float) -> float:
    return round(max(0.0, value), 3)
