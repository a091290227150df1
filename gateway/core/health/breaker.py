"""A circuit breaker for one backend: repeated failures take it out, a successful trial brings it back."""

from __future__ import annotations

from enum import StrEnum

from gateway.core.failure import BLAMELESS, FailureKind
from gateway.core.plan import Breaker

__all__ = ["BackendBreaker", "BreakerState"]

_NOT_COUNTED = BLAMELESS | {FailureKind.BUSY, FailureKind.LOADING}
"""The caller's mistakes, and an engine that is merely busy or not ready."""
_HARD = frozenset((FailureKind.CONNECT, FailureKind.CREDENTIALS))
"""Nothing can work there; everything else is soft, and may pass."""
_RAMP, _LEAST = 60.0, 0.1
"""Seconds in which a backend that is back gets all again, and the share it begins with."""
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

    __slots__ = (
        "_alone", "_cause", "_closed_at", "_failures", "_open_until", "_opened_at", "_openings", "_successes", "policy",
    )  # fmt: skip

    def __init__(self, policy: Breaker) -> None:
        self.policy = policy
        self._failures = 0
        self._openings = 0
        self._successes = 0
        self._open_until: float | None = None
        self._closed_at: float | None = None
        self._alone = False
        """Whether no other worked when it was opened."""
        self._opened_at = 0.0
        self._cause: FailureKind | None = None
        """What opened it last; None for a rest that the engine asked for."""

    def state(self, now: float) -> BreakerState:
        """The state at `now`: an open breaker goes on trial by itself once its time is up."""
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now < self._open_until else BreakerState.TRIAL

    @property
    def retry_at(self) -> float | None:
        """When the next trial is let through; None while closed."""
        return self._open_until

    @property
    def cause(self) -> FailureKind | None:
        """What opened it, while it is open or on trial; None while closed, or for a rest that was asked for."""
        return self._cause if self._open_until is not None else None

    def ramp(self, now: float) -> float:
        """Share of its requests that a backend may have which is back after failures: a tenth, all after a minute.

        One without which some requests had no other gets all at once.
        """
        if self._closed_at is None or self._cause is None or self._alone or now - self._closed_at >= _RAMP:
            return 1.0
        return max(_LEAST, (now - self._closed_at) / _RAMP)

    @property
    def asked_for(self) -> bool:
        """Whether the rest in force is one that a busy engine asked for, and not what failures brought."""
        return self._cause is None

    def failed(self, kind: FailureKind, now: float, *, last: bool = False, sole: bool = False) -> None:
        """Count a failed attempt.

        The `last` working backend of those that may serve the request is not switched off by what may pass. A `sole`
        one, for which some requests have no other at all, never rests for longer than `policy.open` after such.
        """
        if kind in _NOT_COUNTED:
            return
        state = self.state(now)
        if state is BreakerState.OPEN:
            return  # sent before it opened, and already judged
        self._failures += 1
        enough = kind is FailureKind.CREDENTIALS or self._failures >= self.policy.failures
        if (enough or state is BreakerState.TRIAL) and (kind in _HARD or not last):
            self._alone = last or sole
            self._open(kind, now, doubling=kind in _HARD or not sole)

    def reached(self, now: float, *, restarted: bool = False) -> None:
        """A probe was answered: a rest that began because nobody was there need not be long.

        No answer closes it, since an engine may list its models while it completes nothing. But one that `restarted` is
        another process, whatever the one before it did: it goes on trial at once.
        """
        if self.state(now) is not BreakerState.OPEN or self._open_until is None:
            return
        if restarted and self._cause not in (None, FailureKind.CREDENTIALS):
            self._open_until = now
        elif self._cause is FailureKind.CONNECT:
            self._open_until = min(self._open_until, self._opened_at + self.policy.open)

    def asks(self, until: float) -> None:
        """A question of our own is open until then at most, while it rests after failures: nobody is sent there."""
        if self._open_until is not None and self._cause is not None:
            self._extend(until)

    def asked(self, answered: bool | None, now: float) -> None:
        """It was answered: the rest ends, and it goes on trial at once. Without an answer it rests anew.

        None: it could not be asked, so the rest is what it was.
        """
        if self._open_until is None or self._cause is None:
            return
        if answered is None:
            self._open_until = min(self._open_until, max(now, self._opened_at + self.policy.open))
        else:
            self._open_until = min(self._open_until, now if answered else now + self.policy.open)

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

    def rest_until(self, moment: float, now: float) -> None:
        """Send nothing before this moment, as an engine asked for (Retry-After); a later rest in force stays.

        A rest that failures brought remains one, however much longer it gets.
        """
        if self.state(now) is not BreakerState.OPEN:
            self._cause = None
        self._extend(moment)

    def _extend(self, moment: float) -> None:
        if self._open_until is None or moment > self._open_until:
            self._open_until = moment
        self._successes = 0

    def _open(self, kind: FailureKind, now: float, *, doubling: bool) -> None:
        if self._closed_at is not None:
            forgotten = int((now - self._closed_at) / _FORGET)
            self._openings = max(0, self._openings - forgotten)
        self._closed_at = None
        rest = self.policy.open
        if doubling:
            rest = min(rest * 2.0 ** min(self._openings, 30), max(rest, self.policy.cap))
        self._openings += 1
        self._failures = 0
        self._extend(now + rest)
        self._opened_at, self._cause = now, kind
