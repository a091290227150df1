"""How fast a queue drains: as seen since it began, and until enough was seen, as the speeds of its backends promise."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gateway.core.request import Estimate
from gateway.core.snapshot import BackendView, Health

__all__ = ["DrainRate", "expected_rate"]

_TAU = 30.0
"""Seconds over which the rate is averaged."""
_PSEUDO = 4.0
"""Requests that the expected rate counts as."""


class DrainRate:
    """Work completed a second, averaged over 30 s. The unit of work is the caller's (tokens, device seconds)."""

    __slots__ = ("_at", "_level", "_since")

    def __init__(self, now: float) -> None:
        self.restart(now)

    def restart(self, now: float) -> None:
        """Forget what was completed: as long as nobody waits, it says how much was asked for, not how fast it goes."""
        self._level = 0.0
        self._at = self._since = now

    def completed(self, work: float, now: float) -> None:
        """Count work that just ended."""
        self._level = self._decayed(now) + work
        self._at = now

    def rate(self, now: float, expected: float = 0.0, each: float = 0.0) -> float:
        """Work a second, of which `expected` is believed for as long as four requests of `each` would take by it."""
        pseudo = _PSEUDO * each if expected > 0.0 else 0.0
        seconds = _TAU * (1.0 - math.exp(-max(now - self._since, 0.0) / _TAU))
        if pseudo > 0.0:
            seconds += pseudo / expected
        return (self._decayed(now) + pseudo) / seconds if seconds > 0.0 else 0.0

    def _decayed(self, now: float) -> float:
        return self._level * math.exp(-max(0.0, now - self._at) / _TAU)


def expected_rate(views: Iterable[BackendView], models: Iterable[str], estimate: Estimate) -> float:
    """Tokens (prompt and output) a second that the working backends of `models` complete, each as full as it may be.

    With n such requests at once, n of them take the steps of one answer and the prefills of all.
    """
    wanted = tuple(models)
    tokens, rate = estimate.prompt + max(1, estimate.output), 0.0
    for view in views:
        offer = next((found for model in wanted if (found := view.offer(model)) is not None), None)
        if offer is None or view.health not in (Health.UP, Health.TRIAL):
            continue
        fitting = view.pool // (tokens + view.charge.beside(tokens)) if view.pool > 0 else view.slots
        batch = max(1, min(view.slots, fitting))
        context = estimate.prompt + estimate.output // 2
        step = offer.speed.decode.step_seconds(batch, batch * context) * view.decode_factor
        prefill = offer.speed.prefill.seconds(estimate.prompt, 0) * view.prefill_factor
        seconds = max(1, estimate.output) * step + batch * prefill
        rate += batch * tokens / seconds if seconds > 0.0 else 0.0
    return rate
