"""One state of health from four sources: the operator's drain, the last probe, the breaker, and work that is done."""

from __future__ import annotations

from enum import StrEnum

from gateway.core.health.breaker import BackendBreaker, BreakerState
from gateway.core.snapshot import Health

__all__ = ["SILENT", "Probed", "health_of"]

SILENT = 15.0
"""Seconds without any token, beyond those predicted, after which an engine counts as hung."""


class Probed(StrEnum):
    """What the last probe of an engine found."""

    UNKNOWN = "unknown"
    """Not probed yet."""
    UP = "up"
    LOADING = "loading"
    DOWN = "down"


_PROBED_UP, _UP = Probed.UP, Health.UP  # see `admission`: every snapshot reads these for each backend


def health_of(
    probed: Probed, breaker: BackendBreaker, draining: bool, now: float, *, silent: float = 0.0
) -> tuple[Health, float | None]:
    """The backend's state, and when its next trial is let through if the breaker is open.

    `silent`: seconds for which no request there got a token that was due. An engine may hang with its health pages in
    good order: then it is on trial, and while what it has stays silent it gets nothing new.

    A probe that answers never overrules the breaker: an engine may list its models while it can't complete anything.
    """
    if draining:
        return Health.DRAINING, None
    if probed is _PROBED_UP and breaker.retry_at is None:
        return (_UP if silent <= SILENT else Health.TRIAL), None
    if probed is Probed.DOWN:
        return Health.DOWN, None
    if probed is Probed.LOADING:
        return Health.LOADING, None
    state = breaker.state(now)
    if state is BreakerState.OPEN:
        return Health.RESTING if breaker.asked_for else Health.OPEN, breaker.retry_at
    if probed is Probed.UNKNOWN:
        return Health.UNKNOWN, None
    return (Health.TRIAL if state is BreakerState.TRIAL or silent > SILENT else Health.UP), None
