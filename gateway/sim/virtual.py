"""The engine model in virtual time: arrivals, a policy that places them, and a heap of events.

Nothing here sleeps: the clock jumps from event to event. Events of one instant are all handled before any engine starts
its next iteration, so that placements made at that instant take part in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gateway.sim.engine_model import EngineModel, StepResult
from gateway.sim.events import (
    Arrival,
    Arrived,
    Breakdown,
    Ended,
    Event,
    FirstToken,
    Left,
    Lost,
    Policy,
    Refuse,
    Tick,
    WakeAt,
    Withdraw,
)
from gateway.sim.outcome import Outcome, Simulation
from gateway.sim.virtual_clock import VirtualClock

__all__ = ["simulate"]


@dataclass(frozen=True, slots=True)
class _StepDone:
    engine: str
    life: int
    """Crashes of the engine before this iteration; the iteration is void when there was one since."""
    result: StepResult
    started_at: float

    def serves(self, outcome: Outcome) -> bool:
        """Whether the request is still where it was when the iteration began: not left, withdrawn or placed anew."""
        placed = outcome.placed_at
        return outcome.under_way and outcome.engine == self.engine and placed is not None and placed <= self.started_at


@dataclass(slots=True)
class _Run:
    engines: Mapping[str, EngineModel]
    policy: Policy
    horizon_s: float
    clock: VirtualClock = field(default_factory=VirtualClock)
    waiting: set[str] = field(default_factory=set)
    arrivals: dict[str, Arrival] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    stepping: set[str] = field(default_factory=set)
    hung: set[str] = field(default_factory=set)
    lives: dict[str, int] = field(default_factory=dict)
    makespan_s: float = 0.0

    def loop(self) -> None:
        while due := self.clock.advance():
            for what in due:
                self.handle(what)
            for name, engine in self.engines.items():
                if engine.has_work and name not in self.stepping and name not in self.hung:
                    result = engine.step(self.clock.now, self.horizon_s)
                    self.stepping.add(name)
                    done = _StepDone(name, self.lives.get(name, 0), result, self.clock.now)
                    self.clock.at(self.clock.now + result.duration_s, done)

    def handle(self, what: object) -> None:
        match what:
            case Arrival():
                self.arrive(what)
            case _StepDone():
                self.step_done(what)
            case Breakdown():
                self.break_down(what)
            case Left():
                self.leave(what.request_id)
            case _:
                self.tell(Tick())

    def arrive(self, arrival: Arrival) -> None:
        request = arrival.request
        self.arrivals[request.id] = arrival
        self.waiting.add(request.id)
        self.outcomes[request.id] = Outcome(request.id, self.clock.now, request.prompt_tokens, request.output_tokens)
        if arrival.patience_s < math.inf:
            self.clock.at(arrival.at_s + arrival.patience_s, Left(request.id, None))
        self.tell(Arrived(arrival))

    def step_done(self, done: _StepDone) -> None:
        if done.life != self.lives.get(done.engine, 0):
            return
        self.stepping.discard(done.engine)
        self.makespan_s = self.clock.now
        for request_id in done.result.emitted:
            outcome = self.outcomes[request_id]
            if done.serves(outcome) and outcome.first_token_at is None:
                outcome.first_token_at = self.clock.now
                self.tell(FirstToken(request_id, done.engine))
        for finished in done.result.finished:
            outcome = self.outcomes[finished.id]
            if done.serves(outcome):
                outcome.end(self.clock.now, finished)
                self.tell(Ended(done.engine, finished))

    def break_down(self, breakdown: Breakdown) -> None:
        name, engine = breakdown.engine, self.engines[breakdown.engine]
        engine.slowdown = breakdown.slowdown
        (self.hung.add if breakdown.hang else self.hung.discard)(name)
        if breakdown.crash:
            self.lives[name] = self.lives.get(name, 0) + 1
            self.stepping.discard(name)
            # An answer whose last tokens were being computed is as lost as the others.
            engine.crash()
            lost = [o for o in self.outcomes.values() if o.engine == name and o.under_way]
            for outcome in lost:
                outcome.lose()
                self.waiting.add(outcome.id)
            for outcome in lost:
                self.tell(Lost(outcome.id, name))

    def leave(self, request_id: str) -> None:
        outcome = self.outcomes[request_id]
        if outcome.under_way or request_id in self.waiting:
            outcome.left = True
            self.waiting.discard(request_id)
            if outcome.engine is not None:
                self.engines[outcome.engine].abort(request_id)
            self.tell(Left(request_id, outcome.engine))

    def tell(self, event: Event) -> None:
        for action in self.policy.on_event(self.clock.now, event, self.engines):
            if isinstance(action, WakeAt):
                self.clock.at(action.at_s, None)
                continue
            outcome = self.outcomes[action.request_id]
            if isinstance(action, Withdraw):
                self.withdraw(outcome)
                continue
            self.waiting.remove(action.request_id)
            if isinstance(action, Refuse):
                outcome.refused = action.reason
            else:
                outcome.engine = action.engine
                outcome.placed_at = self.clock.now
                self.submit(self.engines[action.engine], outcome)

    def submit(self, engine: EngineModel, outcome: Outcome) -> None:
        """An answer for which the window is too short ends there, as engines end it."""
        request = self.arrivals[outcome.id].request
        room = engine.profile.max_model_len - request.prompt_tokens
        outcome.cut = 0 < room < request.output_tokens
        if outcome.cut:
            request = replace(request, output_tokens=room, finish_reason="length")
        outcome.output_tokens = request.output_tokens
        engine.submit(request, self.clock.now)

    def withdraw(self, outcome: Outcome) -> None:
        if not outcome.under_way or outcome.engine is None:
            raise KeyError(outcome.id)
        self.engines[outcome.engine].abort(outcome.id)
        outcome.withdraw()
        self.waiting.add(outcome.id)


def simulate(
    arrivals: Iterable[Arrival],
    engines: Mapping[str, EngineModel],
    policy: Policy,
    *,
    breakdowns: Iterable[Breakdown] = (),
    horizon_s: float = 0.0,
) -> Simulation:
    """Play `arrivals` through `policy` on `engines` until nothing more can happen.

    `horizon_s` lets an engine do that many seconds of pure decoding as one event: faster, but what is placed meanwhile
    waits for its end. KeyError when the policy places or refuses a request that is not waiting, or withdraws one that
    is not placed; ValueError when it places one whose prompt the engine's window cannot hold.
    """
    run = _Run(engines, policy, horizon_s)
    entries: list[Arrival | Breakdown] = [*breakdowns, *arrivals]
    for entry in sorted(entries, key=lambda each: each.at_s):
        run.clock.at(entry.at_s, entry)
    run.loop()
    return Simulation(tuple(run.outcomes.values()), run.makespan_s)
