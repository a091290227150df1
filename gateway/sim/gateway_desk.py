"""The turns of a simulated gateway: from the queue, through the pump, to leases and refusals.

What `gateway.dispatcher` does between two events, without sockets and futures.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from gateway.core.admission import limits_of
from gateway.core.decision import Decision, Verdict
from gateway.core.door import Door
from gateway.core.estimators.prompt_tokens import TextCounts
from gateway.core.experience import Experience
from gateway.core.failure import FailureKind
from gateway.core.growing import further_output
from gateway.core.lease import Ended, Lease
from gateway.core.ledger import Ledger, Refused, Totals
from gateway.core.plan import Plan
from gateway.core.pump import pump
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.core.retrying import Retry, RetryBudget, may_retry
from gateway.core.service import service_of
from gateway.core.snapshot import Snapshot
from gateway.sim.gateway_fleet import SimFleet
from gateway.sim.gateway_flight import Pending
from gateway.telemetry.observer import Recorder
from gateway.telemetry.turns import How

__all__ = ["Desk"]

ROUNDS = 3
"""How often one look at the queue starts over when the ledger refuses what the snapshot allowed."""


class Desk:
    """Queue, ledger and experience of one gateway. `admitted` and `declined` are told what was decided; `recorder`, if
    there is one, everything that decisions rest on."""

    def __init__(
        self,
        plan: Plan,
        fleet: SimFleet,
        *,
        admitted: Callable[[Pending, Lease], None],
        declined: Callable[[Decision], None],
        seed: int,
        recorder: Recorder | None = None,
    ) -> None:
        self.plan = plan
        self._recorder = recorder
        self.fleet = fleet
        self.ledger = Ledger()
        self.experience = Experience()
        self.door = Door(plan, self.experience)
        self.waiting = self.door.line.waiting
        self._budget = RetryBudget(plan.retry)
        self.now = 0.0
        self._admitted = admitted
        self._declined = declined
        self._roll = random.Random(seed).random
        self._pending: dict[str, Pending] = {}
        self._fresh: list[Pending] = []

    def __len__(self) -> int:
        """Requests without a place."""
        return len(self._pending)

    def snapshot(self) -> Snapshot:
        """The fleet now."""
        self.experience.read_unseen(self.now)
        return self.fleet.snapshot(self.now, self.ledger, self.experience.factors)

    def totals(self, backend: str) -> Totals:
        """What leases hold there now."""
        return self.ledger.totals(backend, self.now)

    def enter(self, pending: Pending) -> None:
        """A request comes, or comes back from a failed attempt."""
        self._pending[pending.request.id] = pending
        self._fresh.append(pending)

    def forget(self, request_id: str, service: float | None = None) -> None:
        """A request waits no more; `service`: since it runs, for which it is charged so many device seconds."""
        pending = self._pending.pop(request_id, None)
        self._fresh = [each for each in self._fresh if each is not pending]
        self.waiting.remove(request_id, dispatched=service is not None, service=service)

    def first_token(self, lease: Lease) -> None:
        """Its engine began to answer."""
        if self.ledger.first_token(lease.id, self.now):
            totals = self.totals(lease.backend)
            self.experience.first_token(lease, totals, self.now)
            self.fleet.roster.held(lease.backend, totals, self.now)
            self.fleet.roster.progressed(lease.backend, self.now)
            self.fleet.roster.paced(lease.backend, self.experience.residuals(lease.backend), totals.running, self.now)

    def progress(self, lease: Lease, tokens: int) -> None:
        """So many tokens were generated since the request began; its reservation grows ahead of them."""
        new, lease.generated = tokens - lease.generated, tokens
        self.fleet.roster.progressed(lease.backend, self.now)
        self.experience.progressed(lease, tokens, self.now)
        if self.ledger.grow(lease.id, new) and (view := self.snapshot().view(lease.backend)) is not None:
            more = further_output(lease, self.experience.outputs, view)
            if more and self.ledger.extend(lease.id, more, limits_of(view, self.plan, lease.request, self.now)):
                lease.extended += more

    def settle(self, lease: Lease, ended: Ended, counts: TextCounts, *, linger: float = 0.0) -> None:
        """End a lease, and learn from it. `linger` seconds its place stays booked after an abort."""
        until = self.now + linger if linger > 0 else None
        if lease.service is not None:
            actual = lease.service.actual(ended, self.now - lease.granted_at)
            self.waiting.settle(lease.request, lease.service.predicted, actual)
        self.fleet.roster.held(lease.backend, before := self.totals(lease.backend), self.now)
        self.ledger.settle(lease.id, self.now, until, self.experience.orphans(lease))
        self.fleet.roster.held(lease.backend, after := self.totals(lease.backend), self.now)
        self.experience.learn(lease, ended, counts, after, self.now)
        self.fleet.roster.paced(lease.backend, self.experience.residuals(lease.backend), before.running, self.now)
        if ended.completed:
            self.fleet.roster.succeeded(lease.backend, self.now)
        elif ended.failure is not None:
            self.fleet.roster.failed(lease.backend, ended.failure, self.now)
            self.fleet.look_soon(lease.backend)

    def retry(self, lease: Lease, kind: FailureKind) -> Request | None:
        """The request for its next attempt, None when there must be none. Only for failures before the first token."""
        prompt = lease.decision.footprint.prompt if lease.decision.footprint else 0
        request, policy, dead = lease.request, self.plan.retry, kind is FailureKind.BROKEN
        dead = dead or self.fleet.roster.is_down(lease.backend)
        ruling = may_retry(
            kind, request, prompt_tokens=prompt, policy=policy, budget=self._budget, now=self.now, backend_dead=dead
        )
        if not isinstance(ruling, Retry):
            return None
        return request.after_failure_on(lease.backend) if ruling.exclude else request

    def turn(self) -> None:
        """Until nothing new comes: a place may turn out to be no place, and then the request comes back at once."""
        self._pump()
        while self._fresh:
            fresh, self._fresh = self._fresh, []
            for pending in fresh:
                if self._turned_away(pending):
                    continue
                if not self.waiting.offer(pending.request):
                    self._pump()
                    if not self.waiting.offer(pending.request):
                        self._at_the_door(pending)
            self._pump()

    def _turned_away(self, pending: Pending) -> bool:
        seen: list[Snapshot] = []

        def fleet() -> Snapshot:
            seen.append(self.snapshot())
            return seen[-1]

        pending.request, no = self.door.comes(pending.request, pending.chain, None, self.now, fleet, self._roll)
        if no is not None:
            self._keep(How.of_no(no), seen[-1], [no])
            self._decline(no)
        return no is not None

    def _pump(self) -> None:
        expired = self.waiting.expired(self.now)
        if expired:
            self._carry_out(expired, self.snapshot())
        for _ in range(ROUNDS):
            snapshot = self.snapshot()
            order = self.waiting.in_order(self.now)
            if not self.waiting or not self._carry_out(order, snapshot, order.skip_model):
                return

    def _at_the_door(self, pending: Pending) -> None:
        snapshot, request = self.snapshot(), pending.request
        if not self.waiting.length(request.model):
            self._carry_out([request], snapshot)
        if request.id in self._pending:
            no = self.door.full(request, pending.chain, snapshot, self._roll())
            self._keep(How.LINE, snapshot, [no])
            self._decline(no)

    def _keep(self, how: How, snapshot: Snapshot, decisions: list[Decision]) -> None:
        if self._recorder is not None:
            requests = [self._pending[decision.request].request for decision in decisions]
            self._recorder.looked(how, self.plan, snapshot, requests, decisions)

    def _carry_out(
        self, order: Iterable[Request], snapshot: Snapshot, skip: Callable[[str], None] | None = None
    ) -> bool:
        """Decide and act; True when something has to be decided anew."""
        anew = False
        fresh = partial(self._with_hits, snapshot=snapshot)
        taken = partial(self._leads, snapshot=snapshot)
        decisions = pump(self.plan, order, snapshot, self.now, self._roll, fresh, skip, taken)
        self.experience.leaders.settled()
        self._keep(How.PUMP, snapshot, decisions)
        for decision in decisions:
            if decision.verdict is Verdict.ADMIT:
                anew |= not self._admit(decision, snapshot)
            elif decision.verdict is not Verdict.WAIT:
                self._decline(decision)
        return anew

    def _leads(self, request: Request, decision: Decision, snapshot: Snapshot) -> None:
        view = snapshot.view(decision.backend or "")
        if view is not None:
            self.experience.expects(request, self._pending[request.id].chain, decision, view)

    def _admit(self, decision: Decision, snapshot: Snapshot) -> bool:
        pending, request_id = self._pending[decision.request], decision.request
        request, footprint = pending.request, decision.footprint
        view = snapshot.view(decision.backend or "")
        offer = view.offer(decision.model or "") if view else None
        if not (view and offer and footprint):
            return False
        lease_id = f"{request_id}.{request.attempt}"
        limits = limits_of(view, self.plan, request, self.now)
        reply = self.ledger.reserve(lease_id, view.name, footprint, decision.predicted_prefill, limits, self.now)
        if isinstance(reply, Refused):
            return False
        self.fleet.roster.granted(decision, view.name, reply.totals, self.now)
        service = service_of(decision, view, offer)
        lease = Lease(lease_id, request, pending.chain, decision, view.name, offer, view.block, self.now, service)
        self.experience.sent(lease, view)
        if request.attempt == 0:
            self._budget.admitted(self.now)
        self.forget(request_id, service.predicted)
        self._admitted(pending, lease)
        return True

    def _decline(self, decision: Decision) -> None:
        pending = self._pending.get(decision.request)
        if pending is not None and decision.reason is Reason.QUEUE_TIMEOUT:
            decision = self.door.leaves(pending.request, pending.chain, None, self.snapshot(), decision)
        self.forget(decision.request)
        self._declined(decision)

    def _with_hits(self, request: Request, snapshot: Snapshot) -> Request:
        pending, version = self._pending[request.id], self.experience.prefix_version
        if pending.looked_at != version:
            pending.looked_at = version
            hits = self.experience.hits(pending.chain, tuple(request.estimates), snapshot.views)
            pending.request = replace(request, hits=hits)
            if request.id in self.waiting:
                self.waiting.replace(pending.request)
        return pending.request
