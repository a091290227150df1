"""From what was learned of answers to the output tokens to reserve: the fuller a backend is, the surer they must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.core.estimators.output_length import OutputKey, OutputLengthEstimator

if TYPE_CHECKING:
    from gateway.core.request import Request
    from gateway.core.snapshot import BackendView

__all__ = ["LEVELS", "ROOMY", "TIGHT", "USUAL", "OutputQuantiles", "key_of", "level_of", "output_quantiles", "room_of"]

ROOMY, USUAL, TIGHT = 0, 1, 2
"""More than half of the KV pool is free; between a fifth and a half, or the pool is not known; less than a fifth."""
LEVELS = (0.7, 0.9, 0.95)
"""Share of answers that stay within what is reserved, by room: on an empty backend an answer that outgrows it finds
more, on a full one an engine would have to preempt somebody (algorithms 1.4)."""
_INTERACTIVE = 0.03
"""More for who waits at a screen."""
_INTERACTIVE_CLASS = "interactive"


class OutputQuantiles(NamedTuple):
    """Tokens of one choice: expected, and to be reserved by room."""

    mean: int
    roomy: int
    usual: int
    tight: int


def room_of(view: BackendView) -> int:
    """ROOMY, USUAL or TIGHT."""
    pool, used = view.pool, view.reserved + view.foreign
    if pool <= 0:
        return USUAL
    if used + used < pool:
        return ROOMY
    return TIGHT if 5 * used > 4 * pool else USUAL


def level_of(room: int, klass: str) -> float:
    """The share of answers to provide for."""
    return LEVELS[room] + _INTERACTIVE if klass == _INTERACTIVE_CLASS else LEVELS[room]


def output_quantiles(outputs: OutputLengthEstimator, key: OutputKey, klass: str, cap: int | None) -> OutputQuantiles:
    """What to expect of an answer that is cut at `cap` tokens; at least 1 token each."""
    mean = max(1, round(outputs.mean(key, cap=cap)))
    roomy, usual, tight = [outputs.quantile(level_of(room, klass), key, cap=cap) for room in (ROOMY, USUAL, TIGHT)]
    # The mean of a heavy tail may lie above its 90th percentile.
    return OutputQuantiles(mean, roomy, max(mean, usual), max(mean, tight))


def key_of(model: str, request: Request) -> OutputKey:
    """Under which a request's answer on a model is learned."""
    return OutputKey(model, request.client, request.model, request.shape)
