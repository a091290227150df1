"""The fleet as people and clients see it: backends on the admin port, models on the public one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gateway.core.plan import Plan, Route
from gateway.core.snapshot import BackendView, Snapshot
from gateway.fleet.member import Member
from gateway.wire.models import ModelEntry

__all__ = ["backend_rows", "model_entry"]


def backend_rows(snapshot: Snapshot, members: Iterable[Member]) -> list[dict[str, Any]]:
    """One mapping a backend, JSON-ready. Tokens and seconds."""
    known = {member.backend.name: member for member in members}
    return [_row(view, known.get(view.name)) for view in snapshot.views]


def _row(view: BackendView, member: Member | None) -> dict[str, Any]:
    backend = view.backend
    row: dict[str, Any] = {
        "name": view.name,
        "health": str(view.health),
        "state": str(view.health),
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
        "decoding": view.decoding,
        "kv_reserved_tokens": view.reserved,
        "kv_foreign_tokens": view.foreign,
        "kv_pool_tokens": view.pool,
        "kv_block_tokens": view.block,
        "prefill_backlog_seconds": round(view.backlog, 3),
        "prefill_factor": round(view.prefill_factor, 3),
        "decode_factor": round(view.decode_factor, 3),
    }
    if member is not None:
        row["capacity_sources"] = dict(member.capacity.sources)
        row["error"] = member.error
        row["notes"] = list(member.facts.notes) if member.facts is not None else []
    return row


def model_entry(name: str, plan: Plan, snapshot: Snapshot, created: int) -> ModelEntry:
    """A model name with the window that the gateway enforces for it.

    What every backend of it holds, unless told otherwise.
    """
    route = plan.route(name, snapshot) or Route(name=name, serves=name)
    windows = [_window(view, route) for view in snapshot.views if view.offer(route.serves) is not None]
    cap = route.context
    if not windows:
        window = cap if isinstance(cap, int) else None
    elif isinstance(cap, int):
        window = min(cap, max(windows))
    else:
        window = max(windows) if cap == "longest" else min(windows)
    return ModelEntry(id=name, created=created, window=window, max_output=route.output_ceiling)


def _window(view: BackendView, route: Route) -> int:
    offer = view.offer(route.serves)
    window = offer.window if offer is not None else 0
    cap = view.backend.context_cap
    return window if cap is None else min(window, cap)
