"""Whether a failed attempt may be followed by another, and how many more the whole process may make."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.failure import FailureKind
from gateway.core.plan import RetryPolicy
from gateway.core.request import Request

__all__ = ["No", "Retry", "RetryBudget", "may_retry"]

_TRICKLE = 0.1
"""Tokens a second that a budget gains with no traffic at all, so that a quiet gateway can retry too."""
_NOT_ASKED_AGAIN = frozenset((FailureKind.CLIENT, FailureKind.CANCELLED))
_REFUSED = frozenset(
    (FailureKind.CONNECT, FailureKind.BUSY, FailureKind.LOADING, FailureKind.NOT_OFFERED, FailureKind.NOT_CLEARED)
)
"""No work was done: another attempt costs nobody anything."""
_WORKED = frozenset((FailureKind.FIRST_TOKEN, FailureKind.TOKEN_GAP, FailureKind.BROKEN))
"""The engine had the request: its prompt was probably read, and may be what broke it."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Another attempt is allowed. `exclude`: not on the same backend."""

    exclude: bool = True


@dataclass(frozen=True, slots=True)
class No:
    """No other attempt; false in a condition. `why` in a few words, for logs."""

    why: str

    def __bool__(self) -> bool:
        return False


class RetryBudget:
    """A token bucket for the whole process: retries are a share of traffic, so a dead fleet isn't hit many times over.

    Each admitted request adds `policy.budget`, up to `policy.burst`; a retry takes 1. Starts full.
    """

    __slots__ = ("_at", "_tokens", "policy")

    def __init__(self, policy: RetryPolicy) -> None:
        self.policy = policy
        self._tokens = policy.burst
        self._at: float | None = None

    def admitted(self, now: float) -> None:
        """Count a request that was sent for the first time."""
        self._refill(self.policy.budget, now)

    def take(self, now: float) -> bool:
        """Pay for one retry; False when the budget is spent."""
        self._refill(0.0, now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def _refill(self, tokens: float, now: float) -> None:
        if self.policy.budget > 0.0 and self._at is not None:
            tokens += _TRICKLE * max(0.0, now - self._at)
        self._at = now
        self._tokens = min(self.policy.burst, self._tokens + tokens)


def may_retry(
    kind: FailureKind,
    request: Request,
    *,
    prompt_tokens: int,
    policy: RetryPolicy,
    budget: RetryBudget,
    now: float,
    first_byte_sent: bool = False,
    backend_dead: bool = False,
    excused: bool = False,
    fits: bool = False,
) -> Retry | No:
    """Rule on another attempt after one failed with `kind`; a yes for work that was done is paid from `budget`.

    `prompt_tokens` bounds what is read a second time, unless `backend_dead` says that the first reading is lost anyway.
    `excused` attempts cost no budget: those that ran when their backend died, all of them at once. `fits`: what was
    too long is known to fit the same backend with a smaller output budget.
    """
    if first_byte_sent:
        return No("the client has part of the answer")
    if kind in _NOT_ASKED_AGAIN:
        return No("the request itself is at fault")
    if now >= request.deadline:
        return No("its time is up")
    if kind is FailureKind.LOADING:
        return Retry(exclude=False)
    if request.attempt >= policy.attempts:
        return No("all attempts are spent")
    if kind is FailureKind.CONTEXT and fits:
        return Retry(exclude=False)
    if kind is FailureKind.CONTEXT:
        # A backend with a larger window may do; if that one counts too many as well, it is too long.
        return Retry() if request.attempt == 0 else No("the prompt is too long")
    if kind in _REFUSED:
        return Retry()
    if kind in _WORKED:
        if request.attempt > 0:
            return No("it failed in the engine twice")
        if prompt_tokens > policy.size_limit and not backend_dead:
            return No("the prompt is too long to be read twice")
    return Retry() if excused or budget.take(now) else No("the retry budget is spent")
