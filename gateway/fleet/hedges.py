"""Second attempts beside silent ones: what they would be, and whether they are paid for."""

from __future__ import annotations

from dataclasses import replace

from gateway.core.decide import decide
from gateway.core.hedging import HedgeBudget, late_after, may_hedge
from gateway.core.lease import Lease
from gateway.core.plan import Plan
from gateway.core.request import Request
from gateway.core.snapshot import Snapshot

__all__ = ["Hedges"]

_PLACE = 0.5
"""Seconds in which a second attempt finds its place, or there is none."""


class Hedges:
    """Of one gateway. Clients with limits of their own have no hedges: they would pay for both attempts."""

    def __init__(self) -> None:
        self._budget = HedgeBudget(0.0)

    def after(self, lease: Lease, plan: Plan) -> float | None:
        """Seconds of silence after which this attempt may have a second one beside it; None: never."""
        self._budget.share = plan.retry.hedge
        if lease.request.attempt == 0:
            self._budget.admitted()
        limits = plan.clients.get(lease.request.client)
        if (limits is not None and (limits.rates or limits.running is not None)) or lease.request.keeper is not None:
            return None
        return late_after(lease.request, lease.decision, plan.retry.hedge)

    def beside(self, lease: Lease, plan: Plan, snapshot: Snapshot, waiting: int, roll: float) -> Request | None:
        """The request for that second attempt, elsewhere and at once; None: there is none. Paid for if there is."""
        request = lease.request.after_failure_on(lease.backend)
        decision = decide(plan, request, snapshot, snapshot.now, roll)
        if not may_hedge(decision, snapshot, waiting) or not self._budget.take():
            return None
        return replace(request, deadline=min(request.deadline, snapshot.now + _PLACE))
