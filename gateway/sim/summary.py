"""What one simulated run came to, in figures. Seconds, shares of 1; NaN for what nothing was observed of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from gateway.core.lease import Lease
from gateway.sim.engine_model import EngineModel
from gateway.sim.outcome import Outcome, Simulation
from gateway.sim.sequence import SimRequest

__all__ = ["BackendShare", "Calibration", "Goal", "Summary", "ideal_prefill", "mean", "quantile", "summary"]


@dataclass(frozen=True, slots=True)
class Goal:
    """A good answer is whole, its TTFT at most `ttft_s + prompt/prompt_rate`, its mean TPOT at most `tpot_s`."""

    ttft_s: float = 3.0
    prompt_rate: float = 2000.0
    tpot_s: float = 0.1


@dataclass(frozen=True, slots=True)
class BackendShare:
    """One backend's part: of the answered requests, of the run's time at work, and of its pool at most."""

    requests: int
    share: float
    busy: float
    prefilled_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """How true predictions were: observed over predicted. Of what the gateway sent and saw answered.

    `error`: median of |observed/predicted - 1|; `bias`: median of observed/predicted; `late`: the same of the second
    half of the requests, when it had learned.
    """

    samples: int
    error: float
    bias: float
    late: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A run. `prefilled`: tokens that engines computed of prompts, over those that an endless cache would have left."""

    requests: int
    goodput: float
    answered: float
    ttft_s: tuple[float, float, float]
    """50th, 90th and 99th of a hundred; so the next two."""
    tpot_s: tuple[float, float, float]
    e2e_s: tuple[float, float, float]
    prefilled: float
    cached: float
    """Part of the answered prompts that was found in caches."""
    preemptions: int
    lost: int
    """Attempts lost in crashes."""
    refused: Mapping[str, int]
    """By reason, most frequent first."""
    left: int
    tokens_per_s: float
    """Tokens of answers over the whole run."""
    makespan_s: float
    backends: Mapping[str, BackendShare]
    ttft: Calibration | None = None
    tpot: Calibration | None = None


def summary(
    run: Simulation,
    engines: Mapping[str, EngineModel],
    ideal: int,
    goal: Goal,
    leases: Iterable[Lease] | None = None,
) -> Summary:
    """The figures of a run. `ideal`: as of `ideal_prefill`; `leases`: what the gateway granted, where it was one."""
    outcomes = run.outcomes
    done = [one for one in outcomes if one.e2e_s is not None and one.finish_reason != "error"]
    refused = Counter(one.refused for one in outcomes if one.refused is not None)
    refused.update("given up by the engine" for one in outcomes if one.finish_reason == "error")
    prompts = sum(one.prompt_tokens for one in done)
    span = run.makespan_s or math.nan
    times, paces = _calibrations(outcomes, leases) if leases is not None else (None, None)
    return Summary(
        requests=len(outcomes),
        goodput=run.goodput(ttft_s=goal.ttft_s, prompt_rate=goal.prompt_rate, tpot_s=goal.tpot_s),
        answered=len(done) / len(outcomes) if outcomes else math.nan,
        ttft_s=_three(one.ttft_s for one in done),
        tpot_s=_three(one.tpot_s for one in done),
        e2e_s=_three(one.e2e_s for one in done),
        prefilled=sum(e.counters.prefilled_tokens for e in engines.values()) / ideal if ideal else math.nan,
        cached=sum(one.cached_tokens for one in done) / prompts if prompts else math.nan,
        preemptions=sum(e.counters.preemptions for e in engines.values()),
        lost=sum(one.lost for one in outcomes),
        refused=dict(sorted(refused.items(), key=lambda each: (-each[1], each[0]))),
        left=sum(one.left for one in outcomes),
        tokens_per_s=sum(one.output_tokens for one in done) / span,
        makespan_s=run.makespan_s,
        backends={name: _share(name, engine, done, span) for name, engine in engines.items()},
        ttft=times,
        tpot=paces,
    )


def ideal_prefill(requests: Iterable[SimRequest], block: int = 16) -> int:
    """Tokens to compute with one cache of endless size that everything is in from the moment it arrives."""
    seen: set[int] = set()
    total = 0
    for request in requests:
        parent, fresh = 0, request.prompt_tokens
        for end in range(block, request.prompt_tokens, block):
            parent = request.text.key(end - block, end, parent)
            if parent in seen:
                fresh = request.prompt_tokens - end
            seen.add(parent)
        total += fresh
    return total


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest of `values`, in order, that so large a part of them doesn't exceed; NaN of none."""
    return values[max(0, math.ceil(share * len(values)) - 1)] if values else math.nan


def _three(values: Iterable[float | None]) -> tuple[float, float, float]:
    ordered = sorted(value for value in values if value is not None)
    return quantile(ordered, 0.5), quantile(ordered, 0.9), quantile(ordered, 0.99)


def _share(name: str, engine: EngineModel, done: Sequence[Outcome], span: float) -> BackendShare:
    own = [one for one in done if one.engine == name]
    return BackendShare(
        requests=len(own),
        share=len(own) / len(done) if done else math.nan,
        busy=min(1.0, engine.counters.busy_s / span),
        prefilled_tokens=engine.counters.prefilled_tokens,
        output_tokens=sum(one.output_tokens for one in own),
    )


def _calibrations(
    outcomes: Iterable[Outcome], leases: Iterable[Lease]
) -> tuple[Calibration | None, Calibration | None]:
    last = {lease.request.id: lease for lease in leases}

    def pairs(of: Callable[[Lease, Outcome], tuple[float | None, float | None]]) -> list[float]:
        ratios = []
        for outcome in outcomes:
            lease = last.get(outcome.id)
            if lease is not None and outcome.finished_at is not None:
                observed, predicted = of(lease, outcome)
                if observed is not None and predicted:
                    ratios.append(observed / predicted)
        return ratios

    def first(lease: Lease, outcome: Outcome) -> tuple[float | None, float | None]:
        at = outcome.first_token_at
        return None if at is None else at - lease.granted_at, lease.decision.predicted_ttft

    def pace(lease: Lease, outcome: Outcome) -> tuple[float | None, float | None]:
        return outcome.tpot_s, lease.decision.predicted_tpot

    return _calibration(pairs(first)), _calibration(pairs(pace))


def _calibration(ratios: Sequence[float]) -> Calibration | None:
    if not ratios:
        return None
    errors = [abs(ratio - 1.0) for ratio in ratios]
    half = errors[len(errors) // 2 :]
    return Calibration(len(ratios), median(errors), median(ratios), median(half))


def mean(values: Iterable[float]) -> float:
    """The mean of those that are numbers; NaN of none."""
    known = [value for value in values if not math.isnan(value)]
    return fmean(known) if known else math.nan
