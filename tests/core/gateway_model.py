"""A gateway in a few lines, on virtual time: queue, ledger and pump, and engines that do what was predicted."""

from __future__ import annotations

from dataclasses import replace

from gateway.core.admission import limits_of
from gateway.core.decision import Decision, Verdict
from gateway.core.ledger import Ledger, Reserved
from gateway.core.plan import Plan
from gateway.core.pump import pump
from gateway.core.request import Request
from gateway.core.snapshot import BackendView, Snapshot
from gateway.core.waiting import Waiting


class GatewayModel:
    """Advance it with `at(now, arrivals)`; `started` and `gone` tell when each request left the queue."""

    def __init__(self, plan: Plan, views: tuple[BackendView, ...]) -> None:
        self.plan = plan
        self.views = views
        self.ledger = Ledger()
        self.waiting = Waiting(plan.queue, plan.classes)
        self.started: dict[str, tuple[float, str]] = {}
        self.gone: dict[str, Decision] = {}
        self._events: list[tuple[float, str, str]] = []

    def at(self, now: float, arrivals: tuple[Request, ...] = ()) -> None:
        for time, kind, lease in sorted(event for event in self._events if event[0] <= now):
            if kind == "first":
                self.ledger.first_token(lease, time)
            else:
                assert self.ledger.settle(lease, time)
        self._events = [event for event in self._events if event[0] > now]
        for request in arrivals:
            assert self.waiting.offer(request)
        self._pump(now)

    def snapshot(self, now: float) -> Snapshot:
        views = []
        for view in self.views:
            totals = self.ledger.totals(view.name, now)
            views.append(
                replace(
                    view,
                    running=totals.running,
                    reserved=totals.reserved,
                    decoding=totals.decoding,
                    resident=totals.resident,
                    backlog=totals.backlog,
                    prefill_pressure=totals.prefill_pressure,
                    overcommitted=totals.overcommitted,
                )
            )
        return Snapshot(now, tuple(views))

    def _pump(self, now: float) -> None:
        snapshot = self.snapshot(now)
        for decision in pump(self.plan, list(self.waiting.in_order(now)), snapshot, now, lambda: 0.5):
            if decision.verdict is Verdict.WAIT:
                continue
            request = self.waiting.remove(decision.request, dispatched=decision.verdict is Verdict.ADMIT)
            assert request is not None
            if decision.verdict is Verdict.ADMIT:
                self._send(request, decision, snapshot, now)
            else:
                self.gone[request.id] = decision

    def _send(self, request: Request, decision: Decision, snapshot: Snapshot, now: float) -> None:
        assert decision.backend is not None
        assert decision.footprint is not None
        assert decision.predicted_ttft is not None
        assert decision.predicted_tpot is not None
        view = snapshot.view(decision.backend)
        assert view is not None
        limits = limits_of(view, self.plan, request, now)
        answer = self.ledger.reserve(
            request.id, decision.backend, decision.footprint, decision.predicted_prefill, limits, now
        )
        assert isinstance(answer, Reserved), answer
        self.started[request.id] = (now, decision.backend)
        first = now + decision.predicted_ttft
        self._events.append((first, "first", request.id))
        self._events.append((first + decision.predicted_tpot * decision.footprint.output_mean, "settle", request.id))
