"""Estimates of waiting: until a backend has room, until it is worth trying again."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gateway.core.account import PRESSURE_TAU
from gateway.core.reasons import Reason
from gateway.core.snapshot import BackendView, Health

__all__ = ["RETRY_AFTER_MAX", "RETRY_DEFAULT", "next_try", "retry_after", "too_late", "wait_for_room"]

RETRY_AFTER_MAX = 59
"""Seconds; SDKs ignore a Retry-After of a minute and more."""
RETRY_DEFAULT = 5.0
"""Seconds of work ahead when nothing better is known: about one health probe."""
# See `admission`: looked up for each full backend.
_BACKLOG, _SLOTS = Reason.PREFILL_BACKLOG, Reason.SLOTS_FULL
_AWAITED = Reason.PREFIX_IN_PREFILL
_TPOT, _LEARNED, _PACE = Reason.TPOT_LIMIT, Reason.LEARNED_LIMIT, Reason.DECODE_PACE
_FOREIGN_WAIT = 30.0
"""Seconds to wait for room that only others' traffic can free: about half the half-life of the foreign estimate."""


def wait_for_room(view: BackendView, reason: Reason, limit: float, needed: float, service: float) -> float:
    """Expected seconds until a full backend has room, given what its filter found missing.

    Prefill is worked off second by second. For slots and KV, k of the m running requests must end, each holding an even
    share and lasting `service` seconds more: k * service / m, since the first of m exponential rests ends after 1/m of
    their mean. Those that wait there already take the first places: behind them more must end than run now, at the same
    pace.
    """
    missing = needed - limit
    if reason is _AWAITED:
        return max(0.0, missing)
    if reason is _BACKLOG:
        return max(0.0, missing) + view.awaited_prefill
    if reason is _PACE:
        return _until_forgotten(view.prefill_pressure, limit - (needed - view.prefill_pressure), service)
    running = view.running
    if running <= 0:
        return _FOREIGN_WAIT
    ends, before = missing, float(view.awaited)
    if reason is not _SLOTS and reason is not _TPOT and reason is not _LEARNED:
        each = view.reserved / running
        ends = missing / each if each > 0.0 else 1.0
        before = view.awaited_kv / each if each > 0.0 else before
    return (min(max(ends, 1.0), running) + before) * service / running


def _until_forgotten(pressure: float, left: float, service: float) -> float:
    """Seconds until prefills of so many decayed seconds count for no more than `left`.

    At most `service`, after which those who decode are done: a long prompt is too much for them however long ago the
    last one was.
    """
    if left <= 0.0 or pressure <= left:
        return service
    return min(service, PRESSURE_TAU * math.log(pressure / left))


def too_late(wait: float, left: float) -> bool:
    """Say whether a place that is expected after `wait` seconds comes within `left` with a chance below 2 %.

    Times between ends are taken as exponential: the chance is 1 - exp(-left/wait).
    """
    return left < 0.02 * wait


def retry_after(work_ahead: float, drain_rate: float, roll: float) -> int:
    """Whole seconds, 1 to 59, after which trying again is sensible.

    `work_ahead` and `drain_rate` in the same unit of work and that unit a second; `roll` in [0, 1) spreads the clients
    that were refused together over half as much again.
    """
    spread = 1.0 + 0.5 * roll
    seconds = work_ahead / drain_rate * spread if drain_rate > 0.0 else math.inf
    if seconds > RETRY_AFTER_MAX:
        seconds = RETRY_AFTER_MAX / spread  # the longest waits are spread too, below the limit
    return max(1, math.ceil(seconds))


def next_try(views: Iterable[BackendView], now: float, roll: float) -> int:
    """Whole seconds, 1 to 59, until one of these backends may be tried again: its next trial, if all of them rest."""
    trials = []
    for view in views:
        if view.retry_at is not None and view.retry_at > now:
            trials.append(view.retry_at - now)
        elif view.health is Health.UP or view.health is Health.TRIAL:
            trials.append(RETRY_DEFAULT)
    return retry_after(min(trials, default=RETRY_DEFAULT), 1.0, roll)
