"""What was learned, as values that can be kept beyond the process: of prompts, answers, caches and speeds.

Names of models, backends and clients, and numbers; nothing that was asked or answered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from gateway.core.estimators.event_size import EventSize
from gateway.core.estimators.learned_factor import FURTHEST, LearnedFactor
from gateway.core.estimators.output_length import MOST_KEYS, Lengths
from gateway.core.estimators.prompt_tokens import MOST_CLIENTS, Habits
from gateway.core.estimators.proportions import Proportions
from gateway.core.estimators.ratio_spread import RatioSpread
from gateway.core.estimators.survival import SketchState, SurvivalSketch
from gateway.core.experience import Experience, backend_of
from gateway.core.pace import Pace

__all__ = [
    "AnswerLengths",
    "CacheTrust",
    "EventTokens",
    "Factor",
    "PromptTokens",
    "Record",
    "Speed",
    "learned",
    "relearn",
]

_SLICE = 64
"""Records made at once: 0.1 ms of the event loop's time."""
_GONE = 7 * 86_400.0
"""Seconds after which a backend that answers nothing is no longer remembered: names may be made for a day."""
_LEVELS = ((str, str, str, bool, str, bool), (str, str), (str, bool, str), (str,))
"""What the parts of the levels of an OutputKey are."""


@dataclass(frozen=True, slots=True)
class AnswerLengths:
    """One level of `estimators.output_length.OutputKey`."""

    level: tuple[str | bool, ...]
    sketch: SketchState
    shifts: tuple[float, ...]
    samples: int


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """`prompt_tokens.Habits` of one client on a model, or (client None) of all of its clients."""

    model: str
    client: str | None
    mean: tuple[float, ...]
    variance: tuple[tuple[float, ...], ...]
    spread: tuple[float, ...]
    samples: int
    offset: float


@dataclass(frozen=True, slots=True)
class CacheTrust:
    """`PrefixTrust` of one holder: hits and misses by bin of reuse distance."""

    holder: str
    hits: tuple[float, ...]
    misses: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Factor:
    """A `LearnedFactor`; `age` in seconds."""

    level: float
    variance: float
    samples: int
    age: float


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a backend goes compared with its prior."""

    backend: str
    prefill: Factor
    decode: Factor


@dataclass(frozen=True, slots=True)
class EventTokens:
    """`EventSize` of one holder."""

    holder: str
    mean: float


Record = AnswerLengths | PromptTokens | CacheTrust | Speed | EventTokens


def learned(experience: Experience, now: float) -> Iterator[list[Record]]:
    """All that is worth keeping, in slices; others may learn between two of them. `now` in seconds, monotonic."""
    paces = experience.paces.items()
    speeds = [Speed(backend, _factor(pace.prefill, now), _factor(pace.decode, now)) for backend, pace in paces]
    speeds = [speed for speed in speeds if min(speed.prefill.age, speed.decode.age) < _GONE]
    known = {speed.backend for speed in speeds}
    trust = [CacheTrust(holder, *counts) for holder, counts in experience.trust.state().items()]
    trust = [each for each in trust if backend_of(each.holder) in known]
    events = [EventTokens(holder, size.mean) for holder, size in experience.events.items()]
    events = [each for each in events if backend_of(each.holder) in known]
    yield [*speeds, *trust, *events]
    tokens = experience.tokens
    yield [_prompt_tokens(model, None, known) for model, known in tokens.models.items()]
    clients = iter(list(tokens.clients.items()))
    while few := list(islice(clients, _SLICE)):
        yield [_prompt_tokens(model, client, known) for (model, client), known in few]
    levels = iter(list(experience.outputs.lengths.items()))
    while some := list(islice(levels, _SLICE)):
        yield [
            AnswerLengths(level, lengths.sketch.state(now), tuple(lengths.recalibration.shifts), lengths.samples)
            for level, lengths in some
        ]


def relearn(experience: Experience, records: Sequence[Record], now: float, away: float) -> None:
    """Take kept records over into an experience that has learned nothing yet.

    `away`: seconds since they were kept, over which habits fade. Raises ValueError for one that nothing can teach.
    """
    away = max(0.0, away)
    for record in records:
        if isinstance(record, AnswerLengths):
            _relearn_lengths(experience, record, now - away)
        elif isinstance(record, PromptTokens):
            _relearn_prompts(experience, record)
        elif isinstance(record, CacheTrust):
            experience.trust.restore(record.holder, record.hits, record.misses)
        elif isinstance(record, Speed):
            pace = Pace()
            pace.prefill, pace.decode = _restored(record.prefill, now - away), _restored(record.decode, now - away)
            experience.paces[record.backend] = pace
        else:
            experience.events[record.holder] = EventSize.restored(record.mean)


def _relearn_lengths(experience: Experience, record: AnswerLengths, kept_at: float) -> None:
    if tuple(map(type, record.level)) not in _LEVELS or record.samples < 0:
        raise ValueError("a key of other parts")
    if len(experience.outputs.lengths) >= MOST_KEYS:
        return
    lengths = Lengths(SurvivalSketch.restored(record.sketch, kept_at), samples=record.samples)
    lengths.recalibration.restore(record.shifts)
    experience.outputs.lengths[record.level] = lengths


def _prompt_tokens(model: str, client: str | None, known: Habits) -> PromptTokens:
    mean, variance = tuple(known.proportions.mean), tuple([tuple(row) for row in known.proportions.variance])
    return PromptTokens(model, client, mean, variance, known.spread.state(), known.samples, known.offset)


def _relearn_prompts(experience: Experience, record: PromptTokens) -> None:
    if record.samples < 0 or not math.isfinite(record.offset):
        raise ValueError("habits that no prompts teach")
    known = Habits(
        Proportions.restored(record.mean, record.variance),
        RatioSpread.restored(record.spread),
        record.samples,
        record.offset,
    )
    tokens = experience.tokens
    if record.client is None:
        tokens.models[record.model] = known
    elif record.model not in tokens.models:
        raise ValueError("a client's habits on a model that is not known")
    elif len(tokens.clients) < MOST_CLIENTS:
        tokens.clients[record.model, record.client] = known


def _factor(factor: LearnedFactor, now: float) -> Factor:
    return Factor(factor.level, factor.variance, factor.samples, max(0.0, now - factor.updated))


def _restored(factor: Factor, kept_at: float) -> LearnedFactor:
    numbers = (factor.level, factor.variance, factor.age)
    least = min(factor.variance, factor.samples, factor.age)
    if not all(map(math.isfinite, numbers)) or abs(factor.level) > FURTHEST or least < 0:
        raise ValueError("a factor that nothing taught")
    return LearnedFactor(factor.level, factor.variance, factor.samples, kept_at - factor.age)
