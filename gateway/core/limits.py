"""What a backend may hold, and what is missing when a lease is to be entered."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.account import Account
from gateway.core.footprint import Footprint
from gateway.core.reasons import Reason

__all__ = ["Limits", "shortage"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one backend may hold for one class of request; `admission.limits_of` derives it from a snapshot.

    `kv` in tokens, `alone` the same for a request that finds the backend idle (both None: the pool is not known);
    `sequences` running at once; `backlog` seconds of prefill that may be queued before something new is sent.
    """

    kv: int | None
    alone: int | None
    sequences: int
    backlog: float


def shortage(account: Account, footprint: Footprint, limits: Limits, now: float) -> tuple[Reason, float, float] | None:
    """What a backend with these totals lacks for one more request, as reason, limit and need; None when it has room."""
    alone = account.running == 0
    running = account.running + footprint.sequences
    if running > limits.sequences and not (alone and limits.sequences > 0):
        return Reason.SLOTS_FULL, limits.sequences, running
    allowed = limits.alone if alone else limits.kv
    if allowed is not None and account.reserved + footprint.kv > allowed:
        return Reason.KV_FULL, allowed - account.reserved, footprint.kv
    if account.denied:
        return Reason.KV_FULL, 0, footprint.kv
    backlog = account.backlog(now)
    if backlog > limits.backlog:
        return Reason.PREFILL_BACKLOG, limits.backlog, backlog
    return None
