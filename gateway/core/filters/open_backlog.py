"""Little enough prefill is queued inside the engine."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["OpenBacklog"]


@dataclass(frozen=True, slots=True)
class OpenBacklog:
    """Late binding: what waits inside an engine can't be moved any more, so only a few seconds of prefill may.

    Measured in seconds, so a slow device holds fewer queued tokens than a fast one.
    """

    def check(self, candidate: Weighing) -> Reason | None:
        """PREFILL_BACKLOG, in seconds, or None."""
        view = candidate.view
        allowed = view.backend.queued_prefill
        if view.backlog <= allowed:
            return None
        candidate.limit = allowed
        candidate.needed = view.backlog
        return Reason.PREFILL_BACKLOG
