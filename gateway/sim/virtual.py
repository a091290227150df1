"""The engine model in virtual time: arrivals, a policy that places them, and a heap of events.

Nothing here sleeps: the clock jumps from event to event. Events of one instant are all handled before any engine starts
its next iteration, so that placements made at that instant take part in it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gateway.sim.engine_model import EngineModel, StepResult
from gateway.sim.events import Arrival, Arrived, Ended, Event, FirstToken, Policy, Refuse, Tick, WakeAt
from gateway.sim.outcome import Outcome, Simulation

__all__ = ["VirtualClock", "simulate"]


class VirtualClock:
    """Seconds since the start of the run, and the events to come; ties are broken by order of entry."""

    __slots__ = ("_entries", "_heap", "now")

    def __init__(self) -> None:
        """At 0 with nothing to come."""
        self.now = 0.0
        self._heap: list[tuple[float, int, object]] = []
        self._entries = 0

    def at(self, when_s: float, what: object) -> None:
        """Enter `what` for `when_s`; not before now."""
        self._entries += 1
        heapq.heappush(self._heap, (max(when_s, self.now), self._entries, what))

    def advance(self) -> list[object]:
        """Jump to the next moment; everything entered for it, empty when nothing is left."""
        due: list[object] = []
        if self._heap:
            self.now = self._heap[0][0]
        while self._heap and self._heap[0][0] == self.now:
            due.append(heapq.heappop(self._heap)[2])
        return due


@dataclass(slots=True)
class _Run:
    engines: Mapping[str, EngineModel]
    policy: Policy
    horizon_s: float
    clock: VirtualClock = field(default_factory=VirtualClock)
    waiting: dict[str, Arrival] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    stepping: set[str] = field(default_factory=set)
    makespan_s: float = 0.0

    def loop(self) -> None:
        while due := self.clock.advance():
            for what in due:
                self.handle(what)
            for name, engine in self.engines.items():
                if engine.has_work and name not in self.stepping:
                    result = engine.step(self.clock.now, self.horizon_s)
                    self.stepping.add(name)
                    self.clock.at(self.clock.now + result.duration_s, (name, result))

    def handle(self, what: object) -> None:
        if isinstance(what, Arrival):
            request = what.request
            self.waiting[request.id] = what
            self.outcomes[request.id] = Outcome(
                request.id, self.clock.now, request.prompt_tokens, request.output_tokens
            )
            self.tell(Arrived(what))
        elif isinstance(what, tuple):
            self.step_done(*what)
        else:
            self.tell(Tick())

    def step_done(self, name: str, result: StepResult) -> None:
        self.stepping.discard(name)
        self.makespan_s = self.clock.now
        for request_id in result.emitted:
            outcome = self.outcomes[request_id]
            if outcome.first_token_at is None:
                outcome.first_token_at = self.clock.now
                self.tell(FirstToken(request_id, name))
        for finished in result.finished:
            outcome = self.outcomes[finished.id]
            outcome.finished_at = self.clock.now
            outcome.finish_reason = finished.reason
            outcome.cached_tokens = finished.cached_tokens
            outcome.preemptions = finished.preemptions
            self.tell(Ended(name, finished))

    def tell(self, event: Event) -> None:
        for action in self.policy.on_event(self.clock.now, event, self.engines):
            if isinstance(action, WakeAt):
                self.clock.at(action.at_s, None)
                continue
            arrival = self.waiting.pop(action.request_id)
            outcome = self.outcomes[action.request_id]
            if isinstance(action, Refuse):
                outcome.refused = action.reason
            else:
                outcome.engine = action.engine
                outcome.placed_at = self.clock.now
                self.engines[action.engine].submit(arrival.request, self.clock.now)


def simulate(
    arrivals: Iterable[Arrival], engines: Mapping[str, EngineModel], policy: Policy, *, horizon_s: float = 0.0
) -> Simulation:
    """Play `arrivals` through `policy` on `engines` until every placed request has ended.

    `horizon_s` lets an engine do that many seconds of pure decoding as one event: faster, but what is placed meanwhile
    waits for its end. KeyError when the policy names a request that is not waiting, ValueError when it places one
    that the engine cannot hold.
    """
    run = _Run(engines, policy, horizon_s)
    for arrival in sorted(arrivals, key=lambda arrival: arrival.at_s):
        run.clock.at(arrival.at_s, arrival)
    run.loop()
    return Simulation(tuple(run.outcomes.values()), run.makespan_s)
