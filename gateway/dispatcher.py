"""One run loop: events come in, `core.pump` decides, effects go out. One writer, no locks.

Events: an arrival, a first token, an end, a sample or a changed state of a backend, a new plan, a tick while somebody
waits. Effects: a lease granted, a refusal raised, a line in the journal. What follows from a lease is in
`fleet.leases`; the queue is here.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from gateway import clock
from gateway.core.decision import Decision, Verdict
from gateway.core.door import Door
from gateway.core.lease import Ahead, Ended, Lease
from gateway.core.line import Queued
from gateway.core.look import Look
from gateway.core.plan import Plan
from gateway.core.prefix.chain import Chain
from gateway.core.pump import pump
from gateway.core.reasons import Reason
from gateway.core.received import Received
from gateway.core.request import Request
from gateway.core.snapshot import Snapshot
from gateway.errors import GatewayError, StoreError
from gateway.fleet.leases import Leases
from gateway.telemetry.log import log_failure
from gateway.telemetry.observer import Observer, Recorder
from gateway.telemetry.turns import How
from gateway.wire.refusal import refusal, shutting_down

__all__ = ["Dispatcher"]

TICK = 0.1
"""Seconds between looks at the queue while somebody waits: deadlines, breakers and decays move without an event."""
ROUNDS = 3
"""How often one turn starts over when the store refuses what the snapshot allowed."""


@dataclass(slots=True, eq=False)
class _Arrival:
    """A request that waits for its lease; `waited` if it was told so at least once."""

    request: Request
    chain: Chain
    answer: asyncio.Future[Lease]
    looked_at: tuple[int, int] = (-1, -1)
    """Version of the prefix beliefs that its hits were taken from."""
    grants: int = 0
    waited: bool = False
    ahead: Ahead | None = None
    """Who stood before it when it came, if anybody did."""
    look: Look | None = None
    """What the last look at it found."""


class Dispatcher:
    """Holds the queue and the fleet's state, and binds each request to a backend as late as possible."""

    def __init__(
        self,
        plan: Plan,
        *,
        leases: Leases,
        observer: Observer,
        recorder: Recorder | None = None,
        now: Callable[[], float] = clock.monotonic,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self.plan = plan
        self.leases = leases
        self.closing = False
        self.received = Received()
        self._observer = observer
        self._recorder = recorder
        self._now = now
        self._roll = roll
        self._door = Door(plan, leases.experience)
        self._line, self._clients = self._door.line, self._door.clients
        self._waiting = self._line.waiting
        self._arrivals: dict[str, _Arrival] = {}
        self._fresh: list[_Arrival] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        leases.changed = self._wake.set
        leases.served = self._served

    # --- events

    async def submit(self, request: Request, chain: Chain) -> Lease:
        """Wait for a lease. Raises what `refusal` makes of a no; cancelled, it leaves no trace."""
        arrival = _Arrival(request, chain, asyncio.get_running_loop().create_future())
        if self.closing:
            raise shutting_down()
        self._arrivals[request.id] = arrival
        self._fresh.append(arrival)
        self._wake.set()
        try:
            return await arrival.answer
        except asyncio.CancelledError:
            self._forget(arrival)
            self._wake.set()
            if arrival.answer.done() and not arrival.answer.cancelled() and arrival.answer.exception() is None:
                # Granted in the moment in which the client left.
                self.leases.settle(arrival.answer.result(), Ended(), None)
            raise

    def fleet_changed(self) -> None:
        """A backend was sampled, discovered, lost or found again."""
        self._wake.set()

    def replan(self, plan: Plan) -> None:
        """Take a new policy: running requests are untouched, waiting ones are decided by it from now on."""
        self.plan = plan
        self._door.replan(plan)
        self.leases.replan(plan)

    def waiting(self) -> dict[str, int]:
        """How many requests wait, by the name of the model they asked for."""
        return self._waiting.lengths

    def queued(self, snapshot: Snapshot) -> dict[str, Queued]:
        """What waits, by the name of the model asked for, and in how many seconds it should be served."""
        return self._line.by_model(snapshot)

    def in_order(self, most: int) -> list[tuple[Request, Look | None]]:
        """The first of those that wait, in the order in which they are considered, and what the last look found."""
        order = islice(self._waiting.in_order(self._now()), most)
        return [(request, arrival.look) for request in order if (arrival := self._arrivals.get(request.id))]

    # --- the loop

    def start(self) -> None:
        """Begin to dispatch."""
        self._task = asyncio.create_task(self._run(), name="dispatcher")

    async def stop(self) -> None:
        """Stop dispatching; whoever still waits is told so."""
        self.closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for arrival in list(self._arrivals.values()):
            self._answer(arrival, shutting_down())

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(TICK if self._arrivals else None):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            try:
                await self._turn()
            except Exception as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """A fault of ours in a turn: told to those who wait, who would else wait for ever; the next turn is another."""
        log_failure("a turn of deciding failed", error)
        for arrival in list(self._arrivals.values()):
            self._answer(arrival, GatewayError("the gateway failed to decide upon this request; its log has the trace"))

    async def _turn(self) -> None:
        """Take in who arrived, then pump. A full queue is pumped first: what it holds may just have found room."""
        fresh, self._fresh = self._fresh, []
        pumped = False
        for arrival in fresh:
            if arrival.request.id not in self._arrivals:
                continue  # left already
            if self._turned_away(arrival):
                continue
            if not self._waiting.offer(arrival.request):
                if not pumped:
                    await self._pump()
                    pumped = True
                if not self._waiting.offer(arrival.request):
                    await self._at_the_door(arrival)
                    continue
            self._clients.enter(arrival.request)
            if self._waiting.length(arrival.request.model) > 1:
                arrival.ahead = self._line.ahead(arrival.request, self.leases.snapshot())
            pumped = False
        if not pumped:
            await self._pump()

    def _turned_away(self, arrival: _Arrival) -> bool:
        """Whether it gets a no at once."""
        leases, now = self.leases, self._now()
        gate = leases.quotas.gate()
        seen: list[Snapshot] = []

        def fleet() -> Snapshot:
            seen.append(leases.snapshot())
            return seen[-1]

        arrival.request, no = self._door.comes(arrival.request, arrival.chain, gate, now, fleet, self._roll)
        if no is not None:
            self._keep(How.of_no(no), seen[-1], [arrival.request], [no])
            self._decline(arrival, no)
        return no is not None

    async def _pump(self) -> None:
        expired = self._waiting.expired(self._now())
        if expired:
            await self._carry_out(expired, self.leases.snapshot())
        for _ in range(ROUNDS):
            snapshot = self.leases.snapshot()
            order = self._waiting.in_order(snapshot.now)
            allowed = self.leases.quotas.gate().within(order, snapshot.now, order.skip_client)
            if not await self._carry_out(allowed, snapshot, order.skip_model):
                return

    async def _at_the_door(self, arrival: _Arrival) -> None:
        """The queue has no place: admitted at once, if nobody waits before it, or turned away."""
        snapshot = self.leases.snapshot()
        request = arrival.request
        if not self._waiting.length(request.model) and self.leases.quotas.gate().short(request) is None:
            await self._carry_out([arrival.request], snapshot)
        if arrival.request.id in self._arrivals:
            no = self._door.full(request, arrival.chain, snapshot, self._roll())
            self._keep(How.LINE, snapshot, [request], [no])
            self._decline(arrival, no)

    def _keep(self, how: How, snapshot: Snapshot, requests: Sequence[Request], decisions: Sequence[Decision]) -> None:
        """For whoever records all that is decided."""
        if self._recorder is not None:
            self._recorder.looked(how, self.plan, snapshot, requests, decisions)

    async def _carry_out(
        self, order: Iterable[Request], snapshot: Snapshot, skip: Callable[[str], None] | None = None
    ) -> bool:
        """Decide upon these and act; True when the store refused something, so that it must be decided anew."""
        started = self._now()
        fresh = partial(self._with_hits, snapshot=snapshot)
        taken = partial(self._leads, snapshot=snapshot)
        decisions = pump(self.plan, order, snapshot, snapshot.now, self._roll, fresh, skip, taken)
        self.leases.experience.leaders.settled()
        self._observer.pumped(self._now() - started, len(decisions))
        if self._recorder is not None:
            self._keep(How.PUMP, snapshot, [self._arrivals[one.request].request for one in decisions], decisions)
        anew = False
        for decision in decisions:
            arrival = self._arrivals.get(decision.request)
            if arrival is None or arrival.answer.done():
                continue
            if decision.verdict is Verdict.WAIT:
                arrival.waited = True
                arrival.look = Look.of(decision, arrival.look)
                continue
            if decision.verdict is Verdict.ADMIT:
                anew |= await self._admit(arrival, decision, snapshot)
            else:
                self._decline(arrival, decision)
        return anew

    def _leads(self, request: Request, decision: Decision, snapshot: Snapshot) -> None:
        """An admitted request reads its prompt for those behind it, too."""
        view, arrival = snapshot.view(decision.backend or ""), self._arrivals[request.id]
        if view is not None:
            self.leases.experience.expects(request, arrival.chain, decision, view)

    async def _admit(self, arrival: _Arrival, decision: Decision, snapshot: Snapshot) -> bool:
        """Reserve what was decided, and grant the lease; True when the store has no room for it any more."""
        view = snapshot.view(decision.backend or "")
        offer = view.offer(decision.model or "") if view is not None else None
        if view is None or offer is None or decision.footprint is None:
            return True
        request = arrival.request
        lease_id = f"{request.id}.{request.attempt}.{arrival.grants}"
        arrival.grants += 1
        try:
            lease = await self.leases.grant(lease_id, request, arrival.chain, decision, view, offer)
        except StoreError as error:
            self._answer(arrival, error)
            return False
        if lease is None:
            return True
        lease.ahead = arrival.ahead
        self._observer.decided(request, decision)
        self._forget(arrival, lease)
        if arrival.answer.done():  # the client left while the store was asked
            self.leases.settle(lease, Ended(), None)
        else:
            arrival.answer.set_result(lease)
        return False

    def _decline(self, arrival: _Arrival, decision: Decision) -> None:
        if decision.reason is Reason.QUEUE_TIMEOUT:
            gate, snapshot = self.leases.quotas.gate(), self.leases.snapshot()
            decision = self._door.leaves(arrival.request, arrival.chain, gate, snapshot, decision)
        if arrival.waited and decision.verdict is Verdict.REJECT:
            decision = replace(decision, verdict=Verdict.SHED)
        self._observer.decided(arrival.request, decision)
        self._answer(arrival, refusal(arrival.request, decision, self.plan))

    def _answer(self, arrival: _Arrival, error: GatewayError) -> None:
        self._forget(arrival)
        if not arrival.answer.done():
            arrival.answer.set_exception(error)

    def _forget(self, arrival: _Arrival, lease: Lease | None = None) -> None:
        """It waits no more; `lease`: since it was given one, for which it is charged."""
        self._arrivals.pop(arrival.request.id, None)
        self._clients.leave(arrival.request.id)
        service = lease.service.predicted if lease is not None and lease.service is not None else None
        self._waiting.remove(arrival.request.id, dispatched=lease is not None, service=service)
        if service is not None:
            self.received.add(arrival.request.klass, arrival.request.client, service)

    def _served(self, request: Request, charged: float, took: float) -> None:
        """A lease of it was settled, which took so many device seconds where so many had been charged."""
        self._waiting.settle(request, charged, took)
        self.received.add(request.klass, request.client, took - charged)

    def _with_hits(self, request: Request, snapshot: Snapshot) -> Request:
        """Look up anew what prefix is where, if that changed since this request was last decided upon."""
        arrival = self._arrivals[request.id]
        version = self.leases.experience.prefix_version
        if arrival.looked_at != version:
            arrival.looked_at = version
            models = tuple(request.estimates)
            hits = self.leases.experience.hits(arrival.chain, models, snapshot.views, snapshot.now)
            if hits != request.hits:
                arrival.request = replace(request, hits=hits)
                if request.id in self._waiting:
                    self._waiting.replace(arrival.request)
        return arrival.request
