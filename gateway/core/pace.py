"""How fast a backend goes compared with its prior, seen through the traffic that it has.

A request's own times say little under load: others share the steps, and prompts are read in turn. So what the backend
did is kept as sums. Prefill: while prompts wait to be read, the time from one first token to the next was spent on the
prompt that got it. Decode: the steps that the prior allows for the batches that ran (the integral of dt/step), and the
seconds of prefill in between; every request in the batch shared all of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gateway.core.account import Totals
from gateway.core.backend import Offer
from gateway.core.degrading.phase import Phase
from gateway.core.estimators.learned_factor import LearnedFactor
from gateway.core.lease import Ended, Lease

__all__ = ["Pace"]

PREFILL_SAMPLE = 256
"""Uncached tokens below which the time to the first token says more about overheads than about prefill."""
DECODE_SAMPLE = 16
"""Answer tokens below which the time per token says more about its ends than about decoding."""
DECODE_SECONDS = 10.0
"""A request that runs for longer teaches on the way: a slow backend's answers may take minutes."""
_CHUNK = 2048
"""Tokens of a prompt in one step (the usual chunked-prefill budget): so many steps of decoding cut into a prefill."""
_ONE_PIECE = 1e-4
"""Seconds a token that no engine makes: an answer that came so fast came in one piece, its first token unseen."""
_UNREAD = 15
"""Residuals kept for whoever wants them."""
_OWN_SHARE = 0.5
"""Least part of a time that must be the phase in question; with less the rest's error counts as much."""


@dataclass(slots=True)
class _Mark:
    """The sums as they were at a token of a running answer."""

    at: float
    tokens: int
    steps: float
    prefilled: float


@dataclass(slots=True)
class _Reading:
    """Prompts whose first tokens came at one moment: seconds since the one before, and what the prior says of them."""

    seconds: float
    step: float
    predicted: float = 0.0
    tokens: int = 0


class Pace:
    """One backend: learned factors on its prior, for prefill and for decode. Seconds; `now` on one monotonic clock."""

    def __init__(self) -> None:
        self.prefill = LearnedFactor()
        self.decode = LearnedFactor()
        self.residuals: list[tuple[Phase, float]] = []
        """Observed over predicted seconds, as they were learned; whoever reads them empties it."""
        self._unread: set[str] = set()
        self._read_until = 0.0
        """Prefill before this moment is accounted for."""
        self._reading: _Reading | None = None
        self._spoiled = False
        """A prompt was given up while it was read, so the time to the next first token is not that one's own."""
        self._marks: dict[str, _Mark] = {}
        self._at = 0.0
        self._step = 0.0
        """Seconds of a step of the batch that decodes now, by the prior; 0 when there is none."""
        self._steps = 0.0
        self._prefilled = 0.0

    def factors(self, now: float) -> tuple[float, float]:
        """(prefill, decode): observed over predicted seconds."""
        return self.prefill.factor(now), self.decode.factor(now)

    def sent(self, lease: Lease) -> None:
        """A prompt was sent: from now on it is in prefill, after those that are there already."""
        if not self._unread:
            self._close(lease.granted_at)
            self._read_until, self._spoiled = lease.granted_at, False
        self._unread.add(lease.id)

    def first_token(self, lease: Lease, totals: Totals, now: float) -> None:
        """A prompt has been read; `totals` count it among the decoding ones."""
        self._unread.discard(lease.id)
        self._close(now)
        if self._reading is None:
            self._reading = None if self._spoiled else _Reading(now - self._read_until, self._step)
            self._read_until, self._spoiled = now, False
        footprint = lease.decision.footprint
        if self._reading is not None and footprint is not None:
            self._reading.predicted += lease.offer.speed.prefill_seconds(footprint.uncached, footprint.cached)
            self._reading.tokens += footprint.uncached
        self._batch(lease.offer, totals, now)
        self._prefilled += lease.decision.predicted_prefill
        self._marks[lease.id] = _Mark(now, 1, self._steps, self._prefilled)

    def progressed(self, lease: Lease, tokens: int, now: float) -> None:
        """So many tokens of an answer are there."""
        mark = self._marks.get(lease.id)
        if mark is not None and now - mark.at >= DECODE_SECONDS:
            self._advance(now)
            self._learn_decode(lease, mark, tokens, now)
            self._marks[lease.id] = _Mark(now, tokens, self._steps, self._prefilled)

    def ended(self, lease: Lease, ended: Ended, totals: Totals, now: float) -> None:
        """A request is over, one way or another; `totals` don't count it any more."""
        mark = self._marks.pop(lease.id, None)
        if mark is None or now - mark.at < _ONE_PIECE * ((ended.output_tokens or 1) - 1):
            self._unread.discard(lease.id)
            mark, self._reading, self._spoiled = None, None, True
        self._close(now)
        self._batch(lease.offer, totals, now)
        if ended.failure is not None:
            return
        if mark is not None:
            self._learn_decode(lease, mark, ended.output_tokens or 0, now)
        if ended.prefill_seconds is not None and ended.prompt_tokens:
            cached = ended.cached_tokens or 0
            uncached = ended.prompt_tokens - cached
            if uncached >= PREFILL_SAMPLE:
                predicted = lease.offer.speed.prefill_seconds(uncached, cached)
                self.prefill.learn(ended.prefill_seconds, predicted, now)

    def _close(self, now: float) -> None:
        """Learn from the last first tokens, once it is certain that no more came at their moment."""
        reading = self._reading
        if reading is None or now <= self._read_until:
            return
        self._reading = None
        # It waits for half of the step under way, then shares its own steps with those who decode.
        others = (math.ceil(reading.tokens / _CHUNK) + 0.5) * reading.step * self.decode.factor(now)
        own = reading.seconds - others
        if reading.tokens >= PREFILL_SAMPLE and own >= _OWN_SHARE * reading.seconds:
            self.prefill.learn(own, reading.predicted, now)
            if reading.predicted > 0.0:
                self._tell(Phase.PREFILL, own / reading.predicted)

    def _batch(self, offer: Offer, totals: Totals, now: float) -> None:
        self._advance(now)
        self._step = offer.speed.step_seconds(totals.decoding, totals.resident)

    def _advance(self, now: float) -> None:
        if self._step:
            self._steps += max(0.0, now - self._at) / self._step
        self._at = now

    def _learn_decode(self, lease: Lease, since: _Mark, tokens: int, now: float) -> None:
        made = tokens - since.tokens
        if made < DECODE_SAMPLE or lease.request.n > 1:
            return
        seconds, steps = now - since.at, self._steps - since.steps
        decoding = seconds - (self._prefilled - since.prefilled)
        if steps > 0.0 and decoding > _OWN_SHARE * seconds:
            self.decode.learn(decoding / made, seconds / steps, now)
            self._tell(Phase.DECODE, decoding / made / (seconds / steps))

    def _tell(self, phase: Phase, ratio: float) -> None:
        self.residuals = [*self.residuals[-_UNREAD:], (phase, ratio)]
