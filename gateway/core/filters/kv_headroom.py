"""Enough KV blocks are free, keeping the headroom that prevents preemption."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.admission import kv_limit
from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["KvHeadroom"]


@dataclass(frozen=True, slots=True)
class KvHeadroom:
    """Compares the request's tokens with what is free; a pool that isn't known bounds nothing, the slots do."""

    def check(self, candidate: Weighing) -> Reason | None:
        """KV_FULL, in tokens, or None."""
        view = candidate.view
        if view.overcommitted:
            candidate.limit = 0
            candidate.needed = candidate.kv
            return Reason.KV_FULL
        if view.pool <= 0:
            return None
        free = kv_limit(view) - view.reserved
        if candidate.kv <= free:
            return None
        candidate.limit = free
        candidate.needed = candidate.kv
        return Reason.KV_FULL
