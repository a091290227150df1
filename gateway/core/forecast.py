"""What a device makes of a stream of requests, by arithmetic: TTFT, TPOT, and the most it sustains.

One engine with chunked prefill is taken for two things that share a device: a queue of prefills served one after
another, and a batch of decodes that the prefills stretch. The queue is M/G/1 (Poisson arrivals, any prefill seconds;
Pollaczek-Khinchine); the batch holds as many sequences as arrive while one is answered (Little's law).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

__all__ = ["Bottleneck", "Forecast", "Goals", "Sample", "Speed", "Traffic", "forecast", "sustained"]

FULL = 0.95
"""Share of a device's time that prefill may take; beyond, queues grow without end for practical purposes."""
_CHUNK = 2048
"""Prompt tokens of a mixed step (the usual chunked-prefill budget), in which every decoding sequence gets its token."""
_TAIL = 0.05
_ROUNDS = 40
_CLOSE = 0.01
"""Sequences by which a batch may still grow when it counts as settled."""


class Speed(Protocol):
    """How fast a device is with a model; `estimators.speed_prior.SpeedPrior` is one."""

    def prefill_seconds(self, uncached: int, cached: int = 0) -> float:
        """Seconds to prefill `uncached` tokens behind `cached` ones, with the device to itself."""
        ...

    def step_seconds(self, batch: int, kv_tokens: int = 0) -> float:
        """Seconds of one decode step of `batch` sequences that hold `kv_tokens` in total."""
        ...


class Sample(NamedTuple):
    """One request, in tokens; `cached` of the prompt come from the prefix cache."""

    prompt: int
    cached: int
    output: int


class Bottleneck(StrEnum):
    """What gives out first."""

    PREFILL = "prefill"
    DECODE = "decode"
    KV = "kv"
    SLOTS = "slots"
    TTFT = "ttft"
    TPOT = "tpot"


@dataclass(frozen=True, slots=True)
class Goals:
    """What clients want, in seconds; None: anything."""

    ttft: float | None = None
    tpot: float | None = None


class Traffic:
    """A mix of requests, as what matters of it: sums over samples. Raises ValueError when there are none."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        if not samples:
            raise ValueError("traffic without a request")
        self.samples = tuple(samples)
        count = len(self.samples)
        self.prompt = sum(each.prompt for each in samples) / count
        """Mean tokens."""
        self.output = sum(each.output for each in samples) / count
        self.cached = sum(each.cached for each in samples) / count
        written = sum(each.output for each in samples)
        weighted = sum(each.output * (each.prompt + each.output / 2) for each in samples)
        self.context = weighted / written if written else self.prompt
        """Mean tokens that a decoding sequence holds, over time."""

    def longest(self, share: float) -> int:
        """Tokens, prompt and answer, that a share of the requests stay under."""
        lengths = sorted(each.prompt + each.output for each in self.samples)
        return lengths[min(len(lengths) - 1, math.ceil(share * len(lengths)) - 1)]


@dataclass(frozen=True, slots=True)
class Forecast:
    """How it would go at `rate` requests a second. Seconds; `full` names what gave out, None when nothing does.

    `busy`: share of the time spent on prefill. `batch`: sequences decoding at once. `ttft_p95`: that 95 % stay under.
    """

    rate: float
    busy: float
    batch: float
    ttft: float
    ttft_p95: float
    tpot: float
    full: Bottleneck | None = None


class _Prefill(NamedTuple):
    """Over the samples: mean seconds of prefill, its mean steps, mean squares and product, and what 95 % stay under."""

    seconds: float
    steps: float
    square: float
    product: float
    steps_square: float
    p95: float

    def service(self, step: float) -> tuple[float, float]:
        """Mean and mean square of the seconds of a prefill with a decode step of `step` seconds in each step."""
        mean = self.seconds + self.steps * step
        return mean, self.square + 2.0 * step * self.product + step * step * self.steps_square


def forecast(
    speed: Speed, room: int, slots: int, traffic: Traffic, rate: float, goals: Goals | None = None
) -> Forecast:
    """Forecast `rate` requests a second on a device of that speed, whose KV pool has `room` for so many sequences.

    `room` is counted at the mean context of the traffic, and `slots` is the engine's own limit. A miss of `goals`
    counts as giving out.
    """
    return _forecast(speed, room, slots, traffic, _prefill(speed, traffic), rate, goals or Goals())


def sustained(speed: Speed, room: int, slots: int, traffic: Traffic, goals: Goals | None = None) -> Forecast:
    """Forecast the highest rate at which nothing gives out, and what would next; a rate of 0 if nothing is borne."""
    goals, prefill = goals or Goals(), _prefill(speed, traffic)

    def at(rate: float) -> Forecast:
        return _forecast(speed, room, slots, traffic, prefill, rate, goals)

    low, high = 0.0, FULL / prefill.seconds if prefill.seconds > 0.0 else 1e6
    best, worst = at(0.0), at(high)
    if best.full is not None or worst.full is None:
        return best if best.full is not None else worst
    for _ in range(_ROUNDS):
        middle = at((low + high) / 2)
        if middle.full is None:
            low, best = middle.rate, middle
        else:
            high, worst = middle.rate, middle
    return Forecast(best.rate, best.busy, best.batch, best.ttft, best.ttft_p95, best.tpot, worst.full)


def _prefill(speed: Speed, traffic: Traffic) -> _Prefill:
    seconds = [speed.prefill_seconds(each.prompt - each.cached, each.cached) for each in traffic.samples]
    steps = [math.ceil((each.prompt - each.cached) / _CHUNK) for each in traffic.samples]
    count = len(seconds)
    p95 = sorted(seconds)[min(count - 1, math.ceil((1.0 - _TAIL) * count) - 1)]
    return _Prefill(
        sum(seconds) / count,
        sum(steps) / count,
        sum(each * each for each in seconds) / count,
        sum(a * b for a, b in zip(seconds, steps, strict=True)) / count,
        sum(each * each for each in steps) / count,
        p95,
    )


def _forecast(
    speed: Speed, room: int, slots: int, traffic: Traffic, prefill: _Prefill, rate: float, goals: Goals
) -> Forecast:
    busy = rate * prefill.seconds
    if room < 1:
        return Forecast(rate, busy, 0.0, math.inf, math.inf, math.inf, Bottleneck.KV)
    if busy > FULL:
        return Forecast(rate, busy, 0.0, math.inf, math.inf, math.inf, Bottleneck.PREFILL)
    most = min(room, slots)
    batch, tpot, full = _batch(speed, most, traffic, rate, busy)
    if full:
        limit = Bottleneck.DECODE if math.isinf(tpot) else Bottleneck.KV if room <= slots else Bottleneck.SLOTS
        return Forecast(rate, busy, batch, math.inf, math.inf, tpot, limit)
    step = tpot * (1.0 - busy)
    mean, square = prefill.service(step if batch >= 1.0 else step * batch)
    queue = rate * mean
    if queue > FULL:
        return Forecast(rate, busy, batch, math.inf, math.inf, tpot, Bottleneck.PREFILL)
    wait = rate * square / (2.0 * (1.0 - queue))
    # Those who wait at all (a share of `queue`) wait about exponentially long.
    tail = wait / queue * math.log(queue / _TAIL) if queue > _TAIL else 0.0
    ttft, ttft_p95 = wait + mean + step, max(tail, wait) + prefill.p95 + (mean - prefill.seconds) + step
    missed: Bottleneck | None = None
    if goals.ttft is not None and ttft_p95 > goals.ttft:
        missed = Bottleneck.TTFT
    elif goals.tpot is not None and tpot > goals.tpot:
        missed = Bottleneck.TPOT
    return Forecast(rate, busy, batch, ttft, ttft_p95, tpot, missed)


def _batch(speed: Speed, most: int, traffic: Traffic, rate: float, busy: float) -> tuple[float, float, bool]:
    """Sequences that decode at once, the TPOT that one of them sees, and whether they are more than `most`.

    Little's law: as many are in the batch as arrive while one is answered, which takes the longer the more there are.
    One that is there sees that many beside itself, since arrivals don't know of each other. The smallest number that
    agrees with itself, found from below since the one grows with the other.
    """
    others = 0.0
    while True:
        tpot = _tpot(speed, traffic, others + 1.0, busy)
        needed = rate * traffic.output * tpot
        if needed <= others + _CLOSE:
            return needed, tpot, needed > most
        if others >= most:
            # Would it ever agree with itself, given room? If not, the device can't write that fast at all.
            far = 64.0 * most
            runaway = rate * traffic.output * _tpot(speed, traffic, far, busy) > far
            return others, math.inf if runaway else tpot, True
        others = min(float(most), needed)


def _tpot(speed: Speed, traffic: Traffic, batch: float, busy: float) -> float:
    """Seconds a token in a batch of that size: between the whole sizes around it, stretched by the prefills."""
    below = int(batch)
    seconds = [speed.step_seconds(size, round(size * traffic.context)) for size in (below, below + 1)]
    return (seconds[0] + (batch - below) * (seconds[1] - seconds[0])) / (1.0 - busy)
