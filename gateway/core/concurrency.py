"""How many sequences one backend should run at once, beside what its slots and its KV cache allow.

Two bounds (algorithms 2.2): the batch whose steps still keep the objective for the time per output token (TPOT), and,
of an engine that tells nothing of itself, what was learned from how it slows down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gateway.core.estimators.decode_speed import DecodeSpeed
from gateway.core.plan import Plan

__all__ = ["BatchCap", "GradientLimit", "batch_within", "objectives"]

MOST = 256
"""Sequences; no batch is looked for beyond."""
_CONTEXT = 4096.0
"""Tokens of a sequence, before any was seen."""
_KEPT = 4096


def batch_within(decode: DecodeSpeed, tpot: float, context: int, factor: float = 1.0, most: int = MOST) -> int:
    """The most sequences of `context` tokens each with which a decode step takes at most `tpot` seconds.

    At least 1, at most `most`. `factor`: observed over predicted seconds of that backend.
    """
    allowed = tpot / factor
    low, high = 1, max(1, most)
    while low < high:
        batch = (low + high + 1) // 2
        if decode.step_seconds(batch, batch * context) <= allowed:
            low = batch
        else:
            high = batch - 1
    return low


def objectives(plan: Plan) -> dict[str, float]:
    """Seconds per output token by model: the strictest objective of the routes that may be served by it.

    All that runs in a batch takes the same steps, so a route without an objective keeps that of the others.
    """
    found: dict[str, float] = {}
    for route in plan.routes.values():
        if route.tpot is not None:
            for model in route.models:
                found[model] = min(route.tpot, found.get(model, math.inf))
    return found


class BatchCap:
    """The batch of one backend that keeps the objectives of all its models; asked for at every look at the fleet.

    Answers are worked out for steps of 5 % of the factor and 19 % of the mean context, and kept.
    """

    __slots__ = ("_context", "_found", "_held_to")

    def __init__(self, held_to: Iterable[tuple[DecodeSpeed, float]] = ()) -> None:
        """`held_to`: pairs of a model's speed there and its objective, seconds per output token."""
        self._held_to = tuple(held_to)
        self._found: dict[tuple[int, int], int] = {}
        self._context = _CONTEXT

    def batch(self, contexts: int, sequences: int, factor: float) -> int | None:
        """Sequences, where those that run have so many tokens in all; None when there is no objective.

        While nothing runs, contexts are taken to be as long as before.
        """
        if not self._held_to:
            return None
        if sequences > 0 and contexts > 0:
            self._context = contexts / sequences
        key = round(4.0 * math.log2(self._context + 1.0)), round(20.0 * math.log(factor))
        found = self._found.get(key)
        if found is None:
            context, slower = int(2.0 ** (key[0] / 4.0)), math.exp(key[1] / 20.0)
            found = min(batch_within(speed, tpot, context, slower) for speed, tpot in self._held_to)
            if len(self._found) >= _KEPT:
                self._found.clear()
            self._found[key] = found
        return found


class GradientLimit:
    """What an engine bears, from how its speed changes: a gradient limiter on residuals.

    Of Netflix's Gradient2, with observed over predicted seconds in place of a round trip, which for a language model
    varies a thousandfold with the size of what is asked.
    """

    __slots__ = ("_limit", "_long", "_short")

    START = 4.0
    LEAST = 1.0
    TOLERANCE = 1.5
    """Times the usual seconds that are not yet a sign of too many."""

    def __init__(self) -> None:
        self._limit = self.START
        self._short: float | None = None
        self._long = 0.0

    @property
    def limit(self) -> int:
        """Sequences, 1 to 256."""
        return int(self._limit)

    def learn(self, residual: float, running: int) -> None:
        """Observed over predicted seconds, of a prefill or a step, while `running` sequences were there."""
        if not 0.0 < residual < math.inf:
            return
        if self._short is None:
            self._short = self._long = residual
        else:
            self._short += 0.3 * (residual - self._short)
            self._long += 0.005 * (residual - self._long)
        if self._long > 2.0 * self._short:  # it became faster: what was usual is history
            self._long *= 0.95
        if 2 * running <= self._limit:
            return  # it was not put to the test
        gradient = min(1.0, max(0.5, self.TOLERANCE * self._long / self._short))
        aim = self._limit * gradient + math.sqrt(self._limit)
        self._limit = min(float(MOST), max(self.LEAST, 0.8 * self._limit + 0.2 * aim))
