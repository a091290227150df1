"""One open lease for people: whose it is, what it holds, how far it has come."""

from __future__ import annotations

from typing import Any

from gateway.core.lease import Lease

__all__ = ["lease_row"]


def lease_row(lease: Lease, now: float) -> dict[str, Any]:
    """A mapping, JSON-ready. Tokens, and seconds since its request was sent; nothing of what it says."""
    footprint, request = lease.decision.footprint, lease.request
    return {
        "id": request.id,
        "attempt": request.attempt,
        "client": request.client,
        "class": request.klass,
        "model": request.model,
        "answers": lease.decision.model,
        "phase": "prefill" if lease.answered_at is None else "decode",
        "age_seconds": round(max(0.0, now - lease.granted_at), 3),
        "queued_seconds": round(max(0.0, lease.queued), 3),
        "reserved_tokens": lease.reserved,
        "prompt_tokens": lease.counted_prompt or (footprint.prompt if footprint is not None else 0),
        "cached_tokens": footprint.cached if footprint is not None else 0,
        "generated_tokens": lease.generated,
        "sequences": footprint.sequences if footprint is not None else 1,
    }
