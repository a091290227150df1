"""The gateway itself as a policy of the simulation: its queue, ledger, pump and experience, in virtual time.

The engines are what their profiles say; the gateway knows them as it would know real ones: by what is declared, what
probes find and what answers teach. These are the turns of `gateway.dispatcher`, without sockets and futures.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from gateway.config.compile import compile_policy
from gateway.config.endpoint import Endpoint, endpoint
from gateway.config.load import load
from gateway.core.admission import limits_of, refuse
from gateway.core.decision import Decision, Verdict
from gateway.core.experience import Experience
from gateway.core.failure import FailureKind
from gateway.core.lease import Ended, Lease
from gateway.core.ledger import Ledger, Refused
from gateway.core.plan import Plan
from gateway.core.pump import pump
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.core.retrying import Retry, RetryBudget, may_retry
from gateway.core.scheduling import retry_after
from gateway.core.snapshot import Snapshot
from gateway.core.waiting import Waiting
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
from gateway.sim.gateway_fleet import SimFleet
from gateway.sim.gateway_flight import Flight, Pending
from gateway.sim.gateway_request import Caller, describe

__all__ = ["GatewayPolicy"]

TICK = 0.1
"""Seconds between looks at the queue while somebody waits, as in the dispatcher."""
WATCH = 1.0
"""The same while nobody waits and something runs: silence of an engine is noticed by time alone."""
EXTENSION = 256
"""Tokens by which a reservation grows at once, as in the dispatcher."""
ROUNDS = 3


class GatewayPolicy:
    """Serves a fleet as the gateway would. `declined` are its final noes by request, `granted` all leases in order."""

    def __init__(
        self,
        plan: Plan,
        endpoints: Mapping[str, Endpoint],
        caller: Callable[[Arrival], Caller],
        *,
        breakdowns: Iterable[Breakdown] = (),
        seed: int = 0,
    ) -> None:
        """`caller` says who asks; `breakdowns` are those of the run, for what a probe or a connection would meet."""
        self.plan = plan
        self.ledger = Ledger()
        self.experience = Experience(0.0)
        self.waiting = Waiting(plan.queue, plan.classes)
        self.fleet = SimFleet(plan, endpoints, breakdowns)
        self.declined: dict[str, Decision] = {}
        self.granted: list[Lease] = []
        self._caller = caller
        self._roll = random.Random(seed).random
        self._budget = RetryBudget(plan.retry)
        self._pending: dict[str, Pending] = {}
        self._fresh: list[Pending] = []
        self._flights: dict[str, Flight] = {}
        self._actions: list[Action] = []
        self._armed = math.inf
        self._lingers_until = 0.0
        self._now = 0.0

    @classmethod
    def from_yaml(
        cls, text: str, caller: Callable[[Arrival], Caller], *, breakdowns: Iterable[Breakdown] = (), seed: int = 0
    ) -> GatewayPolicy:
        """A gateway with that configuration; raises config.Problems for a wrong one."""
        policy = load(text).policy
        endpoints = {spec.name: endpoint(spec) for spec in policy.backends}
        return cls(compile_policy(policy), endpoints, caller, breakdowns=breakdowns, seed=seed)

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        """Take the event in, then look at the queue."""
        self._now, self._actions = now, []
        if now >= self._armed:
            self._armed = math.inf
        self._see_progress(engines)
        if isinstance(event, Arrived):
            self.fleet.look(now, engines, self.ledger, self.experience)
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
        self.fleet.look(now, engines, self.ledger, self.experience)
        self._turn()
        self._arm()
        return self._actions

    # --- events

    def _arrive(self, arrival: Arrival) -> None:
        asked = arrival.request
        described = describe(arrival, self._caller(arrival), self.plan, self.experience, self._snapshot())
        self._enter(
            Pending(described.request, described.chain, described.counts, asked.prompt_tokens, asked.output_tokens)
        )

    def _enter(self, pending: Pending) -> None:
        self._pending[pending.request.id] = pending
        self._fresh.append(pending)

    def _first_token(self, flight: Flight) -> None:
        lease = flight.lease
        flight.first_token_at = flight.moved_at = self._now
        if self.ledger.first_token(lease.id, self._now):
            self.experience.first_token(lease, self.ledger.totals(lease.backend, self._now), self._now)
            self.fleet.roster.progressed(lease.backend, self._now)

    def _end(self, finished: Finished) -> None:
        flight = self._flights.pop(finished.id)
        self._settle(flight, flight.ended(self._now, finished))

    def _leave(self, request_id: str) -> None:
        flight = self._flights.pop(request_id, None)
        if flight is None:
            self._forget(request_id)
            return
        traits = self.fleet.roster[flight.lease.backend].engine.traits
        self._settle(flight, flight.left(), linger=traits.abort_settle_s)

    def _fail(self, flight: Flight, kind: FailureKind) -> None:
        """An attempt failed: another one, or the end of it."""
        pending, lease = flight.pending, flight.lease
        ended = flight.failed(kind)
        self._settle(flight, ended)
        footprint = lease.decision.footprint
        ruling = not ended.shown and may_retry(
            kind,
            lease.request,
            prompt_tokens=footprint.prompt if footprint is not None else 0,
            policy=self.plan.retry,
            budget=self._budget,
            now=self._now,
        )
        if isinstance(ruling, Retry):
            request = lease.request
            pending.request = request.after_failure_on(lease.backend) if ruling.exclude else request
            self._enter(pending)
        else:
            self._actions.append(Refuse(lease.request.id, kind.value))

    def _settle(self, flight: Flight, ended: Ended, *, linger: float = 0.0) -> None:
        lease, now = flight.lease, self._now
        self._lingers_until = max(self._lingers_until, now + linger)
        self.ledger.settle(lease.id, now, now + linger if linger > 0 else None)
        self.experience.learn(lease, ended, flight.pending.counts, self.ledger.totals(lease.backend, now), now)
        if ended.completed:
            self.fleet.roster.succeeded(lease.backend, now)
        elif ended.failure is not None:
            self.fleet.roster.failed(lease.backend, ended.failure, now)
            self.fleet.look_soon(lease.backend)

    # --- what streams show

    def _see_progress(self, engines: Mapping[str, EngineModel]) -> None:
        for engine in engines.values():
            for sequence in engine.scheduler:
                flight = self._flights.get(sequence.request.id)
                if flight is not None and flight.first_token_at is not None and sequence.generated > flight.generated:
                    self._progress(flight, sequence.generated)

    def _progress(self, flight: Flight, generated: int) -> None:
        lease, new = flight.lease, generated - flight.generated
        flight.generated, flight.moved_at = generated, self._now
        self.fleet.roster.progressed(lease.backend, self._now)
        if self.ledger.grow(lease.id, new):
            view = self._snapshot().view(lease.backend)
            if view is not None:
                self.ledger.extend(lease.id, EXTENSION, limits_of(view, self.plan, lease.request, self._now))

    def _end_the_silent(self) -> None:
        for flight in list(self._flights.values()):
            kind = flight.silent(self._now, self.fleet.roster[flight.lease.backend].endpoint.timeouts)
            if kind is not None:
                del self._flights[flight.lease.request.id]
                self._actions.append(Withdraw(flight.lease.request.id))
                self._fail(flight, kind)

    # --- the turns of the dispatcher

    def _turn(self) -> None:
        """Until nothing new comes: a place may turn out to be no place, and then the request comes back at once."""
        self._pump()
        while self._fresh:
            fresh, self._fresh = self._fresh, []
            for pending in fresh:
                if not self.waiting.offer(pending.request):
                    self._pump()
                    if not self.waiting.offer(pending.request):
                        self._at_the_door(pending)
            self._pump()

    def _pump(self) -> None:
        for _ in range(ROUNDS):
            snapshot = self._snapshot()
            waiting = tuple(self.waiting.in_order(self._now))
            if not waiting or not self._carry_out(waiting, snapshot):
                return

    def _at_the_door(self, pending: Pending) -> None:
        snapshot, request = self._snapshot(), pending.request
        if not self.waiting.length(request.model):
            self._carry_out([request], snapshot)
        if request.id in self._pending:
            roll, rate = self._roll(), self.experience.drained_tokens.rate(self._now)
            again = retry_after(self.waiting.work(request.model), rate, roll)
            self._decline(refuse(request, Reason.QUEUE_FULL, self._now, roll, again))

    def _carry_out(self, order: Iterable[Request], snapshot: Snapshot) -> bool:
        """Decide and act; True when something has to be decided anew."""
        anew = False
        fresh = partial(self._with_hits, snapshot=snapshot)
        for decision in pump(self.plan, order, snapshot, self._now, self._roll, fresh):
            if decision.verdict is Verdict.ADMIT:
                anew |= not self._admit(decision, snapshot)
            elif decision.verdict is not Verdict.WAIT:
                self._decline(decision)
        return anew

    def _admit(self, decision: Decision, snapshot: Snapshot) -> bool:
        pending, request_id = self._pending[decision.request], decision.request
        request, footprint = pending.request, decision.footprint
        view = snapshot.view(decision.backend or "")
        offer = view.offer(decision.model or "") if view is not None else None
        if view is None or offer is None or footprint is None:
            return False
        lease_id = f"{request_id}.{request.attempt}"
        limits = limits_of(view, self.plan, request, self._now)
        reply = self.ledger.reserve(lease_id, view.name, footprint, decision.predicted_prefill, limits, self._now)
        if isinstance(reply, Refused):
            return False
        self.fleet.roster.reserved(view.name, reply.totals)
        lease = Lease(lease_id, request, pending.chain, decision, view.name, offer, view.block, self._now)
        self.experience.sent(lease, view)
        self._budget.admitted(self._now)
        self.granted.append(lease)
        self._forget(request_id, dispatched=True)
        flight = Flight(pending, lease, self._now)
        if self.fleet.dead(view.name, self._now):
            self._fail(flight, FailureKind.CONNECT)
        else:
            self._flights[request_id] = flight
            self._actions.append(Place(request_id, view.name))
        return True

    def _decline(self, decision: Decision) -> None:
        self.declined[decision.request] = decision
        self._forget(decision.request)
        self._actions.append(Refuse(decision.request, decision.reason.value))

    def _forget(self, request_id: str, *, dispatched: bool = False) -> None:
        pending = self._pending.pop(request_id, None)
        self._fresh = [each for each in self._fresh if each is not pending]
        self.waiting.remove(request_id, dispatched=dispatched)

    def _with_hits(self, request: Request, snapshot: Snapshot) -> Request:
        pending, version = self._pending[request.id], self.experience.prefix_version
        if pending.looked_at != version:
            pending.looked_at = version
            hits = self.experience.hits(pending.chain, tuple(request.estimates), snapshot.views)
            pending.request = replace(request, hits=hits)
            if request.id in self.waiting:
                self.waiting.replace(pending.request)
        return pending.request

    def _snapshot(self) -> Snapshot:
        return self.fleet.snapshot(self._now, self.ledger, self.experience.factors)

    def _arm(self) -> None:
        """Ask for the next tick: soon while somebody waits, later while something runs or lingers."""
        pause = TICK if self._pending else WATCH
        if not self._pending and not self._flights and self._now >= self._lingers_until:
            return
        when = self._now + pause
        if when < self._armed:
            self._armed = when
            self._actions.append(WakeAt(when))
