"""How fast a backend goes compared with its prior, seen through the traffic that it has.

A request's own times say little under load: others share the steps, and their prompts cut in. So what the backend did
between a request's first token and its end is kept as two sums: the steps that its prior allows for the batches that
ran (the integral of dt/step), and the seconds of prefill. The request shared all of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gateway.core.account import Totals
from gateway.core.backend import Offer
from gateway.core.estimators.learned_factor import LearnedFactor
from gateway.core.lease import Ended, Lease

__all__ = ["Pace"]

PREFILL_SAMPLE = 256
"""Uncached tokens below which the time to the first token says more about overheads than about prefill."""
DECODE_SAMPLE = 16
"""Answer tokens below which the time per token says more about its ends than about decoding."""
_CHUNK = 2048
"""Tokens of a prompt in one step (the usual chunked-prefill budget): so many steps of decoding cut into a prefill."""
_OWN_SHARE = 0.5
"""Least part of a request's time that must be the phase in question; with less the rest's error counts as much."""


@dataclass(slots=True)
class _Run:
    """A request on the backend. `undisturbed`: no other prompt was there while its own was read."""

    undisturbed: bool
    step: float
    """Seconds of a step, by the prior, when it was sent."""
    began: float | None = None
    steps: float = 0.0
    prefilled: float = 0.0


class Pace:
    """One backend: learned factors on its prior, for prefill and for decode. Seconds; `now` on one monotonic clock."""

    def __init__(self) -> None:
        self._prefill = LearnedFactor()
        self._decode = LearnedFactor()
        self._runs: dict[str, _Run] = {}
        self._at = 0.0
        self._step = 0.0
        """Seconds of a step of the batch that decodes now, by the prior; 0 when there is none."""
        self._steps = 0.0
        self._prefilled = 0.0

    def factors(self, now: float) -> tuple[float, float]:
        """(prefill, decode): observed over predicted seconds."""
        return self._prefill.factor(now), self._decode.factor(now)

    def sent(self, lease: Lease) -> None:
        """A prompt was sent: from now on it is in prefill, after those that are there already."""
        reading = [run for run in self._runs.values() if run.began is None]
        for run in reading:
            run.undisturbed = False
        self._runs[lease.id] = _Run(not reading, self._step)

    def first_token(self, lease: Lease, totals: Totals, now: float) -> None:
        """A prompt has been read; `totals` count it among the decoding ones."""
        self._batch(lease.offer, totals, now)
        self._prefilled += lease.decision.predicted_prefill
        run = self._runs.get(lease.id)
        if run is not None:
            run.began, run.steps, run.prefilled = now, self._steps, self._prefilled

    def ended(self, lease: Lease, ended: Ended, totals: Totals, now: float) -> None:
        """A request is over, one way or another; `totals` don't count it any more."""
        self._batch(lease.offer, totals, now)
        run = self._runs.pop(lease.id, None)
        if run is not None and ended.failure is None:
            self._learn_prefill(lease, ended, run, now)
            self._learn_decode(lease, ended, run, now)

    def _batch(self, offer: Offer, totals: Totals, now: float) -> None:
        if self._step:
            self._steps += max(0.0, now - self._at) / self._step
        self._at = now
        self._step = offer.speed.step_seconds(totals.decoding, totals.resident)

    def _learn_prefill(self, lease: Lease, ended: Ended, run: _Run, now: float) -> None:
        footprint = lease.decision.footprint
        if not ended.prompt_tokens or footprint is None:
            return
        cached = ended.cached_tokens if ended.cached_tokens is not None else footprint.cached
        uncached = ended.prompt_tokens - cached
        observed = ended.prefill_seconds
        if observed is None and run.undisturbed and ended.ttft is not None:
            # It waits for half of the step under way, then shares its own steps with those who decode.
            others = (math.ceil(uncached / _CHUNK) + 0.5) * run.step * self._decode.factor(now)
            observed = ended.ttft - others
            if observed < _OWN_SHARE * ended.ttft:
                return
        if observed is not None and uncached >= PREFILL_SAMPLE:
            self._prefill.learn(observed, lease.offer.speed.prefill_seconds(uncached, cached), now)

    def _learn_decode(self, lease: Lease, ended: Ended, run: _Run, now: float) -> None:
        tokens = ended.output_tokens or 0
        if run.began is None or tokens < DECODE_SAMPLE or lease.request.n > 1:
            return
        seconds, steps = now - run.began, self._steps - run.steps
        decoding = seconds - (self._prefilled - run.prefilled)
        if steps > 0.0 and decoding > _OWN_SHARE * seconds:
            self._decode.learn(decoding / (tokens - 1), seconds / steps, now)
