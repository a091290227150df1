"""What the time to the first token says of a cache that its engine says nothing about."""

from __future__ import annotations

from gateway.core.estimators.speed_prior import SpeedPrior

__all__ = ["inferred_cached"]

_APART = 4.0
"""How many times longer it takes to read a prompt than the rest of it, before the time tells which was done."""
_LEAST = 0.5
"""Seconds that a prompt must take: below, other things than reading decide."""


def inferred_cached(
    speed: SpeedPrior, factor: float, prompt: int, expected: int, backlog: float, ttft: float
) -> int | None:
    """Tokens that must have been cached: those `expected`, or none; None where the time doesn't tell.

    `factor` is the learned one of the backend, `backlog` the predicted seconds of prefill before this one.
    """
    whole = speed.prefill.seconds(prompt, 0) * factor
    rest = speed.prefill.seconds(prompt - expected, expected) * factor
    if expected <= 0 or whole < _LEAST or whole < _APART * rest or backlog > 0.25 * whole:
        return None
    # Between the two on the scale of ratios: predictions are wrong by factors.
    return expected if ttft * ttft < whole * max(rest, 0.01) else 0
