"""A circuit breaker for one backend: repeated failures take it out, a successful trial brings it back."""

from __future__ import annotations

from enum import StrEnum

from gateway.core.failure import FailureKind
from gateway.core.plan import Breaker

__all__ = ["BackendBreaker", "BreakerState"]

_BLAMELESS = frozenset(
    (FailureKind.CLIENT, FailureKind.CONTEXT, FailureKind.CANCELLED, FailureKind.BUSY, FailureKind.LOADING)
)
"""Says nothing about the backend: the caller's mistakes, and an engine that is merely busy or not ready."""
_HARD = frozenset((FailureKind.CONNECT, FailureKind.CREDENTIALS))
"""Nothing can work there; everything else is soft, and may pass."""
_FORGET = 600.0
"""Seconds of health after which one earlier opening is forgotten (flap damping)."""


class BreakerState(StrEnum):
    """States of a breaker."""

    CLOSED = "closed"
    OPEN = "open"
    TRIAL = "trial"


class BackendBreaker:
    """Failures in a row open it, for twice as long each time; then a few requests are let through on trial.

    Times are seconds on one monotonic clock. `policy` may be replaced at a reload.
    """

    __slots__ = ("_closed_at", "_failures", "_open_until", "_openings", "_successes", "policy")

    def __init__(self, policy: Breaker) -> None:
        self.policy = policy
        self._failures = 0
        self._openings = 0
        self._successes = 0
        self._open_until: float | None = None
        self._closed_at: float | None = None

    def state(self, now: float) -> BreakerState:
        """The state at `now`: an open breaker goes on trial by itself once its time is up."""
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now < self._open_until else BreakerState.TRIAL

    @property
    def retry_at(self) -> float | None:
        """When the next trial is let through; None while closed."""
        return self._open_until

    def failed(self, kind: FailureKind, now: float, *, last: bool = False) -> None:
        """Count a failed attempt. The `last` backend of its models is not switched off by what may pass."""
        if kind in _BLAMELESS:
            return
        state = self.state(now)
        if state is BreakerState.OPEN:
            return  # sent before it opened, and already judged
        self._failures += 1
        enough = kind is FailureKind.CREDENTIALS or self._failures >= self.policy.failures
        if (enough or state is BreakerState.TRIAL) and (kind in _HARD or not last):
            self._open(now)

    def succeeded(self, now: float) -> None:
        """Count an answer that ended well; enough of them on trial close the breaker."""
        state = self.state(now)
        if state is BreakerState.OPEN:
            return
        self._failures = 0
        if state is BreakerState.TRIAL:
            self._successes += 1
            if self._successes >= self.policy.trials:
                self._open_until = None
                self._closed_at = now

    def rest_until(self, moment: float) -> None:
        """Send nothing before this moment, as an engine asked for (Retry-After); a later rest in force stays."""
        self._open_until = moment if self._open_until is None else max(self._open_until, moment)
        self._successes = 0

    def _open(self, now: float) -> None:
        if self._closed_at is not None:
            forgotten = int((now - self._closed_at) / _FORGET)
            self._openings = max(0, self._openings - forgotten)
        self._closed_at = None
        rest = min(self.policy.open * 2.0 ** min(self._openings, 30), self.policy.cap)
        self._openings += 1
        self._failures = 0
        self.rest_until(now + rest)
