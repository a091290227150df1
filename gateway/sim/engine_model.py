"""The emulated engine: requests in, iterations out. No clock, no sockets, no chance.

`step(now)` computes one iteration and says how long it takes; its tokens exist at now + duration. Whoever drives it,
in virtual time or on a real clock, calls it again no sooner than that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.sim.batch import Batch, Scheduler
from gateway.sim.profile import EngineProfile
from gateway.sim.scheduler import PagedScheduler
from gateway.sim.sequence import Sequence, SimRequest

__all__ = ["HEALTHY", "Counters", "EngineModel", "Finished", "Slowdown", "StepResult"]


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Factors on the durations of a device that is not itself: 1 is healthy, 2 takes twice as long."""

    decode: float = 1.0
    prefill: float = 1.0


HEALTHY = Slowdown()
"""A device as fast as its profile."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A request that got its whole answer, or was given up by the engine (reason "error")."""

    id: str
    reason: str
    cached_tokens: int
    preemptions: int


@dataclass(frozen=True, slots=True)
class StepResult:
    """One iteration, or several of pure decoding in a row."""

    duration_s: float
    emitted: dict[str, int]
    """Tokens of the answer by request id, in the order in which they were scheduled."""
    finished: tuple[Finished, ...] = ()
    preempted: tuple[str, ...] = ()


@dataclass(slots=True)
class Counters:
    """Sums since the start, in the meaning of vLLM's metrics of the same names."""

    steps: int = 0
    busy_s: float = 0.0
    prompt_tokens: int = 0
    """Prompt tokens whose first answer token is there, cached ones included."""
    prefix_queries: int = 0
    """Prompt tokens looked up in the prefix cache, once a request."""
    prefix_hits: int = 0
    prefilled_tokens: int = 0
    """Tokens computed in chunks, again after a preemption too."""
    generated_tokens: int = 0
    preemptions: int = 0
    stopped: int = 0
    cut_by_length: int = 0
    failed: int = 0
    aborted: int = 0


class EngineModel:
    """One engine with its requests."""

    def __init__(
        self, profile: EngineProfile, make_scheduler: Callable[[EngineProfile], Scheduler] = PagedScheduler
    ) -> None:
        """An idle engine: vLLM's scheduler unless another is asked for."""
        self.profile = profile
        self.scheduler = make_scheduler(profile)
        self.counters = Counters()
        self.slowdown = HEALTHY
        self._make_scheduler = make_scheduler
        self._sequences: dict[str, Sequence] = {}

    @property
    def has_work(self) -> bool:
        """True while any request is unfinished."""
        return bool(self._sequences)

    def submit(self, request: SimRequest, now: float) -> None:
        """Queue a request; ValueError where it has nothing to do, is longer than the window, or its id is in use."""
        if request.prompt_tokens < 1 or request.output_tokens < 1:
            raise ValueError("a request needs a token of prompt and a token of answer")
        if request.prompt_tokens + request.output_tokens > self.profile.max_model_len:
            raise ValueError(f"longer than max_model_len {self.profile.max_model_len} tokens")
        if request.id in self._sequences:
            raise ValueError(f"request id {request.id} is in use")
        sequence = Sequence(request, submitted_at=now)
        self._sequences[request.id] = sequence
        self.scheduler.add(sequence)

    def abort(self, request_id: str) -> bool:
        """Drop a request and release its memory at once; False when it is not here any more."""
        sequence = self._sequences.pop(request_id, None)
        if sequence is None:
            return False
        self.scheduler.remove(sequence)
        self.counters.aborted += 1
        return True

    def crash(self) -> tuple[str, ...]:
        """Lose all requests and the cache; the ids of the requests."""
        lost = tuple(self._sequences)
        self._sequences.clear()
        self.scheduler = self._make_scheduler(self.profile)
        return lost

    def step(self, now: float, horizon_s: float = 0.0) -> StepResult:
        """Compute one iteration that starts at `now`, or as many of pure decoding as fit into `horizon_s` seconds."""
        batch = self.scheduler.schedule(now, self._max_repeat(horizon_s))
        duration = self._duration(batch)
        counters = self.counters
        counters.steps += batch.repeat
        counters.busy_s += duration
        counters.preemptions += len(batch.preempted)
        emitted: dict[str, int] = {}
        for sequence in batch.decodes:
            self._advance(sequence, batch.repeat, emitted, batch.repeat)
        for sequence, tokens in batch.chunks:
            counters.prefilled_tokens += tokens
            done = sequence.computed + tokens == sequence.total
            if done and not sequence.generated:
                self._count_prompt(sequence)
            self._advance(sequence, tokens, emitted, int(done))
        finished = [self._finish(s, s.request.finish_reason) for s in self._ended(emitted)]
        finished += [self._finish(s, "error") for s in batch.failed]
        return StepResult(duration, emitted, tuple(finished), tuple(s.request.id for s in batch.preempted))

    def _max_repeat(self, horizon_s: float) -> int:
        if horizon_s <= 0.0:
            return 1
        # A lower bound of an iteration's length gives an upper bound of their number; `_duration` is exact.
        shortest = self.profile.step_time.decode_s(self.scheduler.running, 0) * self.slowdown.decode
        return max(1, int(horizon_s / shortest))

    def _duration(self, batch: Batch) -> float:
        times = self.profile.step_time
        count = len(batch.decodes)
        tokens = sum(sequence.total for sequence in batch.decodes)
        decode = batch.repeat * times.decode_s(count, tokens)
        # Every further iteration reads one more token for each sequence.
        decode += times.kv_token_s * count * (batch.repeat * (batch.repeat - 1) // 2)
        prefill = sum(times.prefill_s(tokens, sequence.computed) for sequence, tokens in batch.chunks)
        return decode * self.slowdown.decode + prefill * self.slowdown.prefill

    def _advance(self, sequence: Sequence, computed: int, emitted: dict[str, int], tokens: int) -> None:
        sequence.computed += computed
        sequence.total += tokens
        self.scheduler.computed(sequence)
        if tokens:
            emitted[sequence.request.id] = tokens
            self.counters.generated_tokens += tokens

    def _count_prompt(self, sequence: Sequence) -> None:
        self.counters.prompt_tokens += sequence.request.prompt_tokens
        self.counters.prefix_queries += sequence.request.prompt_tokens
        self.counters.prefix_hits += sequence.cached

    def _ended(self, emitted: dict[str, int]) -> list[Sequence]:
        return [s for s in map(self._sequences.__getitem__, emitted) if s.finished]

    def _finish(self, sequence: Sequence, reason: str) -> Finished:
        self.scheduler.remove(sequence)
        del self._sequences[sequence.request.id]
        if reason == "stop":
            self.counters.stopped += 1
        elif reason == "length":
            self.counters.cut_by_length += 1
        else:
            self.counters.failed += 1
        return Finished(sequence.request.id, reason, sequence.cached, sequence.preemptions)
