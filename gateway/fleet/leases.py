"""What follows from a lease: it is granted, its request moves on, it is settled, and something is learned.

Roster, store and experience are written together here, so that what decisions read always agrees with itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from gateway import clock
from gateway.core.admission import limits_of
from gateway.core.backend import Offer
from gateway.core.boundary import within
from gateway.core.continuing import may_resume, others, rest_of
from gateway.core.decision import Decision
from gateway.core.estimators.prompt_tokens import TextCounts
from gateway.core.experience import Experience
from gateway.core.failure import BLAMELESS, FailureKind
from gateway.core.growing import further_output, is_worth_a_write, prompt_change
from gateway.core.lease import Ended, Lease
from gateway.core.ledger import Totals
from gateway.core.overflowed import Overflowed, after_overflow
from gateway.core.plan import Plan
from gateway.core.prefix.block_events import Event
from gateway.core.prefix.chain import Chain
from gateway.core.request import Request
from gateway.core.retrying import Retry, RetryBudget, may_retry
from gateway.core.scheduling import next_try
from gateway.core.service import service_of
from gateway.core.snapshot import BackendView, Snapshot
from gateway.fleet.open_leases import OpenLeases
from gateway.fleet.quotas import Quotas
from gateway.fleet.roster import Roster
from gateway.state.store import Refused, Store

__all__ = ["Leases"]

LET_GO = 10.0
"""Seconds after which a place is given back though its engine still says that something runs there."""
_OFTEN = 1.0
"""Seconds between samples of an engine that may be asked soon after each abort."""
_TOO_FEW = 4
"""An engine that counts less than a quarter of what a prompt is taken for leaves something out of its count."""
_IDLE, _AS_PREDICTED = Totals(), (1.0, 1.0)


class Leases:
    """All leases of this gateway, and the fleet as they and the probes leave it. One writer: the dispatcher's loop."""

    def __init__(
        self,
        plan: Plan,
        *,
        roster: Roster,
        store: Store,
        experience: Experience,
        now: Callable[[], float] = clock.monotonic,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self.roster = roster
        self.store = store
        self.experience = experience
        self.quotas = Quotas(plan.clients, store, now)
        self.open = OpenLeases()
        self.changed: Callable[[], None] = lambda: None
        """Called after each change that a waiting request may profit from."""
        self.served: Callable[[Request, float, float], None] = lambda _request, _charged, _took: None
        """Called when a lease is settled, with the device seconds that were charged for it and those that it took."""
        self.look_at: Callable[[str], None] = lambda _name: None
        """Called with the name of a backend on which a request just failed."""
        self.sample_in: Callable[[str, float], None] = lambda _name, _seconds: None
        """Called with the name of a backend, and in how many seconds it should be asked whether it let a request go."""
        self.drained: Callable[[str], None] = lambda _name: None
        """Called with the name of a removed backend when nothing of it is left."""
        self._plan = plan
        self._now = now
        self._roll = roll
        self._budget = RetryBudget(plan.retry)

    # --- the life of a lease

    async def grant(
        self, lease_id: str, request: Request, chain: Chain, decision: Decision, view: BackendView, offer: Offer
    ) -> Lease | None:
        """Reserve what was decided on, and charge it to its client.

        None when the store has no room for it any more, or the client's limits don't allow it. Raises StoreError.
        """
        footprint, prefill = decision.footprint, decision.predicted_prefill
        if footprint is None:
            return None
        limits = limits_of(view, self._plan, request, decision.now)
        reply = await self.store.reserve(lease_id, view.name, footprint, prefill, limits, self._now())
        if isinstance(reply, Refused):
            return None
        service = service_of(decision, view, offer)
        lease = Lease(lease_id, request, chain, decision, view.name, offer, view.block, self._now(), service)
        if not await self._charged(lease):
            return None
        now = self._now()
        self.roster.granted(decision, view.name, reply.totals, now)
        self.experience.sent(lease, view)
        self.open.granted(lease)
        if request.attempt == 0:
            self._budget.admitted(now)
        return lease

    async def _charged(self, lease: Lease) -> bool:
        """Charge it to its client; what was reserved is given back when that is refused or fails."""
        charged = False
        try:
            charged = await self.quotas.charge(lease) is None
        finally:
            if not charged:
                self.store.settle(lease.id, self._now())
        return charged

    def first_token(self, lease: Lease) -> None:
        """The engine began to answer: its prefill backlog shrinks, the prompt's prefix is resident."""
        now = self._now()
        if self.store.first_token(lease.id, now):
            totals = self.totals(lease.backend)
            self.open.answered(lease, now)
            self.experience.first_token(lease, totals, now)
            self.roster.held(lease.backend, totals, now)
            self.roster.progressed(lease.backend, now)
            self.roster.paced(lease.backend, self.experience.residuals(lease.backend), totals.running, now)
            self.changed()

    def progress(self, lease: Lease, events: int) -> None:
        """So many events with text have been streamed since the request began; its reservation grows ahead of them."""
        tokens = max(lease.generated, lease.counted_output, self.experience.tokens_in(lease, events))
        new, lease.generated = tokens - lease.generated, tokens
        self.open.generated(lease, new)
        self.roster.progressed(lease.backend, self._now())
        self.experience.progressed(lease, tokens, self._now())
        if self.store.grow(lease.id, new):
            view = self._view(lease.backend)
            more = further_output(lease, self.experience.outputs, view) if view is not None else 0
            if view is not None and more:
                limits = limits_of(view, self._plan, lease.request, self._now())
                if self.store.extend(lease.id, more, limits):
                    lease.extended += more

    def counted(self, lease: Lease, prompt: int | None, output: int | None, cached: int | None) -> None:
        """The engine told on the way how many tokens it counted: what was reserved for the prompt is put right."""
        lease.counted_output = max(lease.counted_output, output or 0)
        footprint = lease.decision.footprint
        if not prompt or lease.counted_prompt is not None or footprint is None:
            return
        lease.counted_prompt = prompt
        if not footprint.prompt // _TOO_FEW <= prompt <= lease.offer.window:
            return
        change = prompt_change(lease, prompt, cached)
        if is_worth_a_write(change, footprint.kv) and self.store.correct(lease.id, prompt, change):
            lease.corrected = change
            self.changed()

    def settle(self, lease: Lease, ended: Ended, counts: TextCounts | None, *, linger: float = 0.0) -> None:
        """End a lease, and learn from it.

        `linger` seconds its place stays booked, for engines that go on after an abort; or until its engine itself says
        that it has let go, if it says such things, or a bound passes.
        """
        if lease.settled:
            return
        lease.settled = True
        now = self._now()
        self.quotas.settle(lease, ended)
        self.open.settled(lease, ended)
        if lease.service is not None:
            actual = lease.service.actual(ended, now - lease.granted_at)
            self.served(lease.request, lease.service.predicted, actual)
        before = self.store.totals(lease.backend, now)
        self.roster.held(lease.backend, before, now)
        until, others = self._lingers_until(lease, ended, linger, now), self.roster.others_running(lease.backend, now)
        self.store.settle(lease.id, now, until, self.experience.orphans(lease), others)
        after = self.totals(lease.backend)
        self.roster.held(lease.backend, after, now)
        self.experience.learn(lease, ended, counts, after, now)
        self.roster.paced(lease.backend, self.experience.residuals(lease.backend), before.running, now)
        if ended.garbage:
            self.roster.failed(lease.backend, FailureKind.GARBAGE, now, None, lease.decision.alternatives)
        elif ended.completed:
            self.roster.succeeded(lease.backend, now)
        elif ended.failure is not None:
            self.roster.failed(lease.backend, ended.failure, now, ended.rest, lease.decision.alternatives)
            if ended.failure not in BLAMELESS:
                self.look_at(lease.backend)
        self._let_go()
        self.changed()

    def _lingers_until(self, lease: Lease, ended: Ended, linger: float, now: float) -> float | None:
        member = self.roster.get(lease.backend)
        if linger <= 0.0 or member is None or member.draining:
            return None
        self.sample_in(lease.backend, linger)
        bound = member.endpoint.timeouts.abort
        if bound is not None:
            return now + bound
        # What decodes is let go at once by all engines that are known, so it isn't worth a wait for a rare sample.
        told = ended.ttft is None or member.engine.traits.poll_floor_s <= _OFTEN
        told = told and self.roster.tells_running(lease.backend, now)
        return now + (max(linger, LET_GO) if told else linger)

    def retry(self, lease: Lease, kind: FailureKind, *, said: Overflowed | None = None) -> Request | None:
        """The request for its next attempt, None when there must be none. Only for failures before the first byte.

        `said`: what an engine that found the prompt too long told of it; the next one must hold that.
        """
        request, now, fits = lease.request, self._now(), False
        if kind is FailureKind.CONTEXT and said is not None:
            sent = lease.decision.footprint.max_tokens if lease.decision.footprint is not None else None
            request, fits = after_overflow(request, lease.offer, sent or request.max_tokens, said)
        prompt = lease.decision.footprint.prompt if lease.decision.footprint is not None else 0
        broken = kind is FailureKind.BROKEN
        dead = broken or self.roster.is_down(lease.backend)
        died = broken and self.roster.died(lease.backend, lease.granted_at, now)
        ruling = may_retry(kind, request, prompt_tokens=prompt, policy=self._plan.retry, budget=self._budget, now=now,
                           backend_dead=dead, excused=died, fits=fits)  # fmt: skip
        if not isinstance(ruling, Retry):
            return None
        if fits or (kind is FailureKind.BUSY and self.roster.rests(lease.backend, now)):
            return replace(request, attempt=request.attempt + 1)  # with less to fit, or when it said
        return request.after_failure_on(lease.backend) if ruling.exclude else request

    def resume(self, lease: Lease, kind: FailureKind, given: int) -> Request | None:
        """The request for the rest of an answer of which `given` tokens are shown; None when there must be none."""
        request, now = lease.request, self._now()
        died = kind is FailureKind.BROKEN and self.roster.died(lease.backend, lease.granted_at, now)
        if not may_resume(kind, request, self._budget, now, excused=died):
            return None
        able = (member.backend.name for member in self.roster if member.engine.traits.resumes != "")
        closed = others(self.offered(), lease.offer, able) | {lease.backend}
        return rest_of(request, lease.offer.model, given - request.given, closed, now)

    def try_again_in(self, lease: Lease) -> int:
        """Seconds after which a request that failed under this lease may be sent again by its client."""
        names, snapshot = lease.decision.alternatives | {lease.backend}, self.snapshot()
        return next_try((view for view in snapshot.views if view.name in names), snapshot.now, self._roll())

    # --- the fleet

    def may_see(self, request: Request, backend: str) -> bool:
        """Whether the data boundary, as the file draws it now, lets that backend see the request; no if it is gone.

        Asked once more just before anything is sent: between a decision and that the file may have changed.
        """
        member, route = self.roster.get(backend), self._plan.routes.get(request.model)
        label = request.label if route is None else max(request.label, route.label)
        return member is not None and within(label, member.backend.clearance)

    def replan(self, plan: Plan) -> None:
        """Take a new policy: what runs is untouched, what it removes is forgotten once nothing runs there."""
        self._plan = plan
        self.quotas.replan(plan.clients)
        self._budget.policy = plan.retry
        self._let_go()
        self.changed()

    def observed(self, backend: str, running: int, asked: float) -> None:
        """An engine, asked at that moment, says how many sequences it has: abandoned ones beyond that are gone."""
        self.store.observe(backend, running, asked)

    def blocks_told(self, backend: str, events: list[Event]) -> None:
        """An engine said which blocks its cache took in and lost."""
        member = self.roster.get(backend)
        if member is not None and len(member.models) == 1:
            (model,) = member.models
            self.experience.blocks_told(backend, model, events, self._now())
            self.changed()

    def restarted(self, backend: str) -> None:
        """An engine came back; its KV cache is empty."""
        member = self.roster.get(backend)
        if member is not None:
            self.experience.forget_cache(backend, member.models)

    def snapshot(self) -> Snapshot:
        """The fleet now."""
        now = self._now()
        self.store.expire(now)
        self.experience.read_unseen(now)
        factors = self.experience.factors
        return self.roster.snapshot(now, lambda name: self.store.totals(name, now), lambda name: factors(name, now))

    def offer(self, lease: Lease) -> Offer | None:
        """What the lease's backend offers of its model now; None when it is gone."""
        member = self.roster.get(lease.backend)
        if member is None:
            return None
        return next((offer for offer in member.offers if offer.answers_to(lease.decision.model or "")), None)

    def offered(self) -> Snapshot:
        """The fleet now as if nothing ran there: what it offers and how it is, at a third of what `snapshot` costs."""
        return self.roster.snapshot(self._now(), lambda _name: _IDLE, lambda _name: _AS_PREDICTED)

    def _view(self, backend: str) -> BackendView | None:
        """One backend now; None when it is gone."""
        member, now = self.roster.get(backend), self._now()
        return member.view(now, self.totals(backend), self.experience.factors(backend, now)) if member else None

    def totals(self, backend: str) -> Totals:
        """What our leases hold on a backend now."""
        now = self._now()
        self.store.expire(now)
        return self.store.totals(backend, now)

    def _let_go(self) -> None:
        """Forget removed backends on which nothing runs any more."""
        for name, models in self.roster.drained(self.totals):
            self.experience.remove(name, models)
            self.open.forget(name)
            self.drained(name)
