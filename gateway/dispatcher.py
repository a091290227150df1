"""One run loop: events come in, `core.pump` decides, effects go out. One writer, no locks.

Events: an arrival, a first token, an end, a sample or a changed state of a backend, a new plan, a tick while somebody
waits. Effects: a lease granted, a refusal raised, a line in the journal. What decisions read is written here and
nowhere else.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from gateway import clock
from gateway.core.admission import limits_of, refuse
from gateway.core.decision import Decision, Verdict
from gateway.core.estimators.prompt_tokens import TextCounts
from gateway.core.experience import Experience
from gateway.core.failure import BLAMELESS, FailureKind
from gateway.core.lease import Ended, Lease
from gateway.core.ledger import Totals
from gateway.core.plan import Plan
from gateway.core.prefix.chain import Chain
from gateway.core.pump import pump
from gateway.core.quota import RunningByClient
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.core.retrying import Retry, RetryBudget, may_retry
from gateway.core.scheduling import next_try
from gateway.core.snapshot import Snapshot
from gateway.core.waiting import Waiting
from gateway.errors import GatewayError, StoreError
from gateway.fleet.roster import Roster
from gateway.state.store import Refused, Store
from gateway.telemetry.log import log_failure
from gateway.telemetry.observer import Observer
from gateway.wire.refusal import refusal, shutting_down

__all__ = ["Dispatcher"]

TICK = 0.1
"""Seconds between looks at the queue while somebody waits: deadlines, breakers and decays move without an event."""
ROUNDS = 3
"""How often one turn starts over when the store refuses what the snapshot allowed."""
LET_GO = 10.0
"""Seconds after which a place is given back though its engine still says that something runs there."""
EXTENSION = 256
"""Tokens by which a reservation grows at once: a few ledger writes a request instead of one a chunk."""


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


class Dispatcher:
    """Holds the queue and the fleet's state, and binds each request to a backend as late as possible."""

    def __init__(
        self,
        plan: Plan,
        *,
        roster: Roster,
        store: Store,
        experience: Experience,
        observer: Observer,
        now: Callable[[], float] = clock.monotonic,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self.plan = plan
        self.roster = roster
        self.store = store
        self.experience = experience
        self.closing = False
        self.look_at: Callable[[str], None] = lambda _name: None
        """Called with the name of a backend on which a request just failed."""
        self.sample_in: Callable[[str, float], None] = lambda _name, _seconds: None
        """Called with the name of a backend, and in how many seconds it should be asked whether it let a request go."""
        self.drained: Callable[[str], None] = lambda _name: None
        """Called with the name of a removed backend when nothing of it is left."""
        self._observer = observer
        self._now = now
        self._roll = roll
        self._waiting = Waiting(plan.queue, plan.classes)
        self._arrivals: dict[str, _Arrival] = {}
        self._fresh: list[_Arrival] = []
        self._running = RunningByClient()
        self._budget = RetryBudget(plan.retry)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # --- events of requests

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
                self.settle(arrival.answer.result(), Ended(), None)  # granted in the moment in which the client left
            raise

    def first_token(self, lease: Lease) -> None:
        """The engine began to answer: its prefill backlog shrinks, the prompt's prefix is resident."""
        now = self._now()
        if self.store.first_token(lease.id, now):
            self.experience.first_token(lease, self.totals(lease.backend), now)
            self.roster.progressed(lease.backend, now)
            self._wake.set()

    def progress(self, lease: Lease, tokens: int) -> None:
        """So many tokens were generated since the request began; its reservation grows ahead of them."""
        new, lease.generated = tokens - lease.generated, tokens
        self.roster.progressed(lease.backend, self._now())
        self.experience.progressed(lease, tokens, self._now())
        if self.store.grow(lease.id, new):
            view = self.snapshot().view(lease.backend)
            if view is not None:
                self.store.extend(lease.id, EXTENSION, limits_of(view, self.plan, lease.request, self._now()))

    def settle(self, lease: Lease, ended: Ended, counts: TextCounts | None, *, linger: float = 0.0) -> None:
        """End a lease, and learn from it.

        `linger` seconds its place stays booked, for engines that go on after an abort; of one that was aborted in
        prefill, until its engine itself says that it has let go, if it says such things.
        """
        if lease.settled:
            return
        lease.settled = True
        now = self._now()
        self._running.leave(lease.request.client)
        self.roster.held(lease.backend, self.store.totals(lease.backend, now))
        self.store.settle(lease.id, now, self._lingers_until(lease, ended, linger, now), self.experience.orphans(lease))
        self.experience.learn(lease, ended, counts, self.totals(lease.backend), now)
        if ended.completed:
            self.roster.succeeded(lease.backend, now)
        elif ended.failure is not None:
            self.roster.failed(lease.backend, ended.failure, now, ended.rest, lease.decision.alternatives)
            if ended.failure not in BLAMELESS:
                self.look_at(lease.backend)
        self._let_go()
        self._wake.set()

    def _lingers_until(self, lease: Lease, ended: Ended, linger: float, now: float) -> float | None:
        member = self.roster.get(lease.backend)
        if linger <= 0.0 or member is None or member.draining:
            return None
        self.sample_in(lease.backend, linger)
        told = ended.ttft is None and self.roster.tells_running(lease.backend, now)
        return now + (max(linger, LET_GO) if told else linger)

    def retry(self, lease: Lease, kind: FailureKind, *, counted: int | None = None) -> Request | None:
        """The request for its next attempt, None when there must be none. Only for failures before the first byte.

        `counted` is what an engine that found the prompt too long says it has, in tokens: the next one must hold that.
        """
        request, now = lease.request, self._now()
        if kind is FailureKind.CONTEXT and counted is not None:
            request = request.at_least(counted)
        prompt = lease.decision.footprint.prompt if lease.decision.footprint is not None else 0
        broken = kind is FailureKind.BROKEN
        died = broken and self.roster.died(lease.backend, lease.granted_at, now)
        ruling = may_retry(kind, request, prompt_tokens=prompt, policy=self.plan.retry, budget=self._budget, now=now,
                           backend_dead=broken, excused=died)  # fmt: skip
        if not isinstance(ruling, Retry):
            return None
        if kind is FailureKind.BUSY and self.roster.rests(lease.backend, now):
            return replace(request, attempt=request.attempt + 1)  # it said when it may be asked again
        return request.after_failure_on(lease.backend) if ruling.exclude else request

    def try_again_in(self, lease: Lease) -> int:
        """Seconds after which a request that failed under this lease may be sent again by its client."""
        names, snapshot = lease.decision.alternatives | {lease.backend}, self.snapshot()
        return next_try((view for view in snapshot.views if view.name in names), snapshot.now, self._roll())

    # --- events of the fleet

    def fleet_changed(self) -> None:
        """A backend was sampled, discovered, lost or found again."""
        self._wake.set()

    def observed(self, backend: str, running: int) -> None:
        """An engine says how many sequences it runs: abandoned ones beyond that are gone."""
        self.store.observe(backend, running)

    def restarted(self, backend: str) -> None:
        """An engine came back; its KV cache is empty."""
        member = self.roster.get(backend)
        if member is not None:
            self.experience.forget_cache(backend, member.models)

    def replan(self, plan: Plan) -> None:
        """Take a new policy: running requests are untouched, waiting ones are decided by it from now on."""
        self.plan = plan
        self._waiting.limits, self._waiting.classes = plan.queue, plan.classes
        self._budget.policy = plan.retry
        self._let_go()
        self._wake.set()

    # --- questions

    def snapshot(self) -> Snapshot:
        """The fleet now."""
        now = self._now()
        self.store.expire(now)
        factors = self.experience.factors
        return self.roster.snapshot(now, lambda name: self.store.totals(name, now), lambda name: factors(name, now))

    def totals(self, backend: str) -> Totals:
        """What our leases hold on a backend now."""
        now = self._now()
        self.store.expire(now)
        return self.store.totals(backend, now)

    def waiting(self) -> dict[str, int]:
        """How many requests wait, by the name of the model they asked for."""
        return self._waiting.lengths

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
            if not self._waiting.length(arrival.request.model):
                self.experience.drained(arrival.request.model, self._now()).restart(self._now())
            if not self._waiting.offer(arrival.request):
                if not pumped:
                    await self._pump()
                    pumped = True
                if not self._waiting.offer(arrival.request):
                    await self._at_the_door(arrival)
                    continue
            pumped = False
        if not pumped:
            await self._pump()

    async def _pump(self) -> None:
        for _ in range(ROUNDS):
            snapshot = self.snapshot()
            waiting = tuple(self._waiting.in_order(snapshot.now))
            if not await self._carry_out(self._running.within_limits(waiting, snapshot.now), snapshot):
                return

    async def _at_the_door(self, arrival: _Arrival) -> None:
        """The queue has no place: admitted at once, if nobody waits before it, or turned away."""
        snapshot = self.snapshot()
        request = arrival.request
        if not self._waiting.length(request.model) and self._running.room(request.client, request.client_limit) > 0:
            await self._carry_out([arrival.request], snapshot)
        if arrival.request.id in self._arrivals:
            roll = self._roll()
            again = self.experience.time_to_drain(self._waiting, request, snapshot, roll)
            self._decline(arrival, refuse(arrival.request, Reason.QUEUE_FULL, snapshot.now, roll, again))

    async def _carry_out(self, order: Iterable[Request], snapshot: Snapshot) -> bool:
        """Decide upon these and act; True when the store refused something, so that it must be decided anew."""
        started = self._now()
        fresh = partial(self._with_hits, snapshot=snapshot)
        decisions = pump(self.plan, order, snapshot, snapshot.now, self._roll, fresh)
        self._observer.pumped(self._now() - started, len(decisions))
        anew = False
        for decision in decisions:
            arrival = self._arrivals.get(decision.request)
            if arrival is None or arrival.answer.done():
                continue
            if decision.verdict is Verdict.WAIT:
                arrival.waited = True
                continue
            if decision.verdict is Verdict.ADMIT:
                anew |= await self._admit(arrival, decision, snapshot)
            else:
                self._decline(arrival, decision)
        return anew

    async def _admit(self, arrival: _Arrival, decision: Decision, snapshot: Snapshot) -> bool:
        """Reserve what was decided, and grant the lease; True when the store has no room for it any more."""
        view = snapshot.view(decision.backend or "")
        offer = view.offer(decision.model or "") if view is not None else None
        if view is None or offer is None or decision.footprint is None:
            return True
        request = arrival.request
        lease_id = f"{request.id}.{request.attempt}.{arrival.grants}"
        arrival.grants += 1
        limits = limits_of(view, self.plan, request, snapshot.now)
        try:
            reply = await self.store.reserve(lease_id, view.name, decision.footprint, decision.predicted_prefill,
                                             limits, self._now())  # fmt: skip
        except StoreError as error:
            self._answer(arrival, error)
            return False
        if isinstance(reply, Refused):
            return True
        self.roster.granted(decision, view.name, reply.totals, snapshot.now)
        lease = Lease(lease_id, request, arrival.chain, decision, view.name, offer, view.block, self._now())
        self.experience.sent(lease, view)
        self._running.enter(request.client)
        self._budget.admitted(self._now())
        self._observer.decided(request, decision)
        self._forget(arrival, dispatched=True)
        if arrival.answer.done():  # the client left while the store was asked
            self.settle(lease, Ended(), None)
        else:
            arrival.answer.set_result(lease)
        return False

    def _decline(self, arrival: _Arrival, decision: Decision) -> None:
        if decision.reason is Reason.QUEUE_TIMEOUT:
            request = arrival.request
            again = self.experience.time_to_drain(self._waiting, request, self.snapshot(), decision.roll)
            decision = replace(decision, retry_after=again)
            if self._running.room(request.client, request.client_limit) <= 0:
                decision = replace(decision, reason=Reason.OVER_QUOTA)
        if arrival.waited and decision.verdict is Verdict.REJECT:
            decision = replace(decision, verdict=Verdict.SHED)
        self._observer.decided(arrival.request, decision)
        self._answer(arrival, refusal(arrival.request, decision, self.plan))

    def _answer(self, arrival: _Arrival, error: GatewayError) -> None:
        self._forget(arrival)
        if not arrival.answer.done():
            arrival.answer.set_exception(error)

    def _forget(self, arrival: _Arrival, *, dispatched: bool = False) -> None:
        self._arrivals.pop(arrival.request.id, None)
        self._waiting.remove(arrival.request.id, dispatched=dispatched)

    def _with_hits(self, request: Request, snapshot: Snapshot) -> Request:
        """Look up anew what prefix is where, if that changed since this request was last decided upon."""
        arrival = self._arrivals[request.id]
        version = self.experience.prefix_version
        if arrival.looked_at != version:
            arrival.looked_at = version
            models = tuple(request.estimates)
            arrival.request = replace(request, hits=self.experience.hits(arrival.chain, models, snapshot.views))
            if request.id in self._waiting:
                self._waiting.replace(arrival.request)
        return arrival.request

    def _let_go(self) -> None:
        """Forget removed backends on which nothing runs any more."""
        for name, models in self.roster.drained(self.totals):
            self.experience.remove(name, models)
            self.drained(name)
