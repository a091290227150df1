"""Conversations whose prompts change near their start at every turn, so that no cache can hold them."""

from __future__ import annotations

from typing import Any

from gateway.core.sessions import Sessions
from gateway.edge.queue_view import session_mark
from gateway.telemetry.parting import parting_record

__all__ = ["diverging_rows"]

_LISTED = 8


def diverging_rows(sessions: Sessions) -> list[dict[str, Any]]:
    """One mapping for each client and model, of the conversation that did so last; latest first, JSON-ready."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for session in reversed(sessions.diverging()):
        client, hint, _ = session.key
        record = parting_record(session.divergence)
        if record is not None and (client, session.model) not in found:
            found[client, session.model] = {
                "client": client,
                "model": session.model,
                "session": session_mark(hint or None),
                "backend": session.backend,
            } | record
    return list(found.values())[:_LISTED]
