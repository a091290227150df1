"""The gateway itself as a policy of the simulation: its queue, ledger, pump and experience, in virtual time.

The engines are what their profiles say; the gateway knows them as it would know real ones: by what is declared, what
probes find and what answers teach. This is `gateway.pipeline` and the relay in virtual time; the desk is the
dispatcher.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from gateway.config.compile import compile_policy
from gateway.config.endpoint import Endpoint, endpoints
from gateway.config.load import load
from gateway.core.decision import Decision
from gateway.core.failure import FailureKind
from gateway.core.lease import Lease
from gateway.core.plan import Plan
from gateway.sim.engine_model import EngineModel, Finished
from gateway.sim.events import (
    Action,
    Arrival,
    Arrived,
    Breakdown,
    Event,
    FirstToken,
    Left,
    Lost,
    Place,
    Refuse,
    WakeAt,
    Withdraw,
)
from gateway.sim.events import Ended as EndedThere
from gateway.sim.gateway_desk import Desk
from gateway.sim.gateway_fleet import SimFleet
from gateway.sim.gateway_flight import Flight, Pending
from gateway.sim.gateway_request import Caller, describe
from gateway.telemetry.observer import Recorder

__all__ = ["GatewayPolicy"]

TICK = 0.1
"""Seconds between looks at the queue while somebody waits, as in the dispatcher."""
WATCH = 1.0
"""The same while nobody waits and something runs: silence of an engine is noticed by time alone."""
EVERY = 64
"""Tokens of a stream between two words about its progress, as in the relay."""


class GatewayPolicy:
    """Serves a fleet as the gateway would. `declined` are its final noes by request, `granted` all leases in order."""

    desk_of: ClassVar[type[Desk]] = Desk
    """Who decides; another kind of desk makes another policy of it."""

    def __init__(
        self,
        plan: Plan,
        endpoints: Mapping[str, Endpoint],
        caller: Callable[[Arrival], Caller],
        *,
        breakdowns: Iterable[Breakdown] = (),
        seed: int = 0,
        recorder: Recorder | None = None,
    ) -> None:
        """`caller` says who asks; `breakdowns` are those of the run, for what a probe or a connection would meet."""
        fleet = SimFleet(plan, endpoints, breakdowns)
        self.desk = self.desk_of(
            plan, fleet, admitted=self._admitted, declined=self._declined, seed=seed, recorder=recorder
        )
        self.declined: dict[str, Decision] = {}
        self.granted: list[Lease] = []
        self._caller = caller
        self._flights: dict[str, Flight] = {}
        self._actions: list[Action] = []
        self._armed = math.inf
        self._lingers_until = 0.0
        self._now = 0.0
        self._engines: Mapping[str, EngineModel] = {}

    @classmethod
    def from_yaml(
        cls, text: str, caller: Callable[[Arrival], Caller], *, breakdowns: Iterable[Breakdown] = (), seed: int = 0
    ) -> GatewayPolicy:
        """A gateway with that configuration; raises config.Problems for a wrong one."""
        policy = load(text).policy
        return cls(compile_policy(policy), endpoints(policy), caller, breakdowns=breakdowns, seed=seed)

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        """Take the event in, then look at the queue."""
        self._now = self.desk.now = now
        self._engines = engines
        self._actions = []
        if now >= self._armed:
            self._armed = math.inf
        self._see_progress(engines)
        if isinstance(event, Arrived):
            self._look(engines)
            self._arrive(event.arrival)
        elif isinstance(event, FirstToken):
            self._first_token(self._flights[event.request_id])
        elif isinstance(event, EndedThere):
            self._end(event.finished)
        elif isinstance(event, Lost):
            self._fail(self._flights.pop(event.request_id), FailureKind.BROKEN)
        elif isinstance(event, Left):
            self._leave(event.request_id)
        self._end_the_silent()
        self._look(engines)
        self.desk.turn()
        self._arm()
        return self._actions

    def _look(self, engines: Mapping[str, EngineModel]) -> None:
        self.desk.fleet.look(self._now, engines, self.desk.ledger, self.desk.experience)

    # --- events

    def _arrive(self, arrival: Arrival) -> None:
        desk = self.desk
        self.desk.enter(describe(arrival, self._caller(arrival), desk.plan, desk.experience, desk.snapshot()))

    def _admitted(self, pending: Pending, lease: Lease) -> None:
        self.granted.append(lease)
        flight = Flight(pending, lease, self._now)
        if self.desk.fleet.dead(lease.backend, self._now):
            self._fail(flight, FailureKind.CONNECT)
        elif pending.prompt_tokens >= self._engines[lease.backend].profile.max_model_len:
            self._fail(flight, FailureKind.CONTEXT)
        else:
            self._flights[lease.request.id] = flight
            self._actions.append(Place(lease.request.id, lease.backend))

    def _declined(self, decision: Decision) -> None:
        self.declined[decision.request] = decision
        self._actions.append(Refuse(decision.request, decision.reason.value))

    def _first_token(self, flight: Flight) -> None:
        flight.first_token_at = flight.moved_at = self._now
        self.desk.first_token(flight.lease)

    def _end(self, finished: Finished) -> None:
        flight = self._flights.pop(finished.id)
        self.desk.settle(flight.lease, flight.ended(self._now, finished), flight.pending.counts)

    def _leave(self, request_id: str) -> None:
        flight = self._flights.pop(request_id, None)
        if flight is None:
            self.desk.forget(request_id)
            return
        linger = self.desk.fleet.roster[flight.lease.backend].engine.traits.abort_settle_s
        self._lingers_until = max(self._lingers_until, self._now + linger)
        self.desk.settle(flight.lease, flight.left(), flight.pending.counts, linger=linger)

    def _fail(self, flight: Flight, kind: FailureKind) -> None:
        """An attempt failed: another one, or the end of it."""
        lease, ended = flight.lease, flight.failed(kind)
        self.desk.settle(lease, ended, flight.pending.counts)
        again = None if ended.shown else self.desk.retry(lease, kind)
        if again is not None:
            flight.pending.request = again
            self.desk.enter(flight.pending)
        else:
            self._actions.append(Refuse(lease.request.id, kind.value))

    # --- what streams show

    def _see_progress(self, engines: Mapping[str, EngineModel]) -> None:
        for engine in engines.values():
            for sequence in engine.scheduler:
                flight = self._flights.get(sequence.request.id)
                if flight is not None and flight.first_token_at is not None:
                    self._streamed(flight, sequence.generated)

    def _streamed(self, flight: Flight, tokens: int) -> None:
        if tokens > flight.tokens:
            flight.tokens, flight.moved_at = tokens, self._now
            if tokens >= flight.lease.generated + EVERY:
                self.desk.progress(flight.lease, tokens)

    def _end_the_silent(self) -> None:
        for flight in list(self._flights.values()):
            kind = flight.silent(self._now, self.desk.fleet.roster[flight.lease.backend].endpoint.timeouts)
            if kind is not None:
                del self._flights[flight.lease.request.id]
                self._actions.append(Withdraw(flight.lease.request.id))
                self._fail(flight, kind)

    def _arm(self) -> None:
        """Ask for the next tick: soon while somebody waits, later while something runs or lingers."""
        waiting = len(self.desk) > 0
        if not waiting and not self._flights and self._now >= self._lingers_until:
            return
        when = self._now + (TICK if waiting else WATCH)
        if when < self._armed:
            self._armed = when
            self._actions.append(WakeAt(when))
