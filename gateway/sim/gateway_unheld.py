"""The gateway without its queue: each request bound on arrival, to see what binding late is worth."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from gateway.core.decide import decide
from gateway.core.decision import Verdict
from gateway.core.growing import further_output
from gateway.core.lease import Lease
from gateway.core.ledger import Limits
from gateway.core.snapshot import BackendView, Snapshot
from gateway.sim.gateway_desk import Desk
from gateway.sim.gateway_flight import Pending
from gateway.sim.gateway_policy import GatewayPolicy

__all__ = ["BoundOnArrival"]


class _Unheld(Desk):
    """A desk without a queue: each request goes to the cheapest backend at once, whether or not it has room.

    A full backend costs the wait for its room, as in the gateway's own decisions.
    """

    def turn(self) -> None:
        """Bind what came."""
        while self._fresh:
            fresh, self._fresh = self._fresh, []
            for pending in fresh:
                self._bind(pending)

    def progress(self, lease: Lease, tokens: int) -> None:
        """What outgrows its reservation closes no backend here."""
        new, lease.generated = tokens - lease.generated, tokens
        self.fleet.roster.progressed(lease.backend, self.now)
        self.experience.progressed(lease, tokens, self.now)
        if self.ledger.grow(lease.id, new) and (view := self.snapshot().view(lease.backend)) is not None:
            more = further_output(lease, self.experience.outputs, view)
            if more and self.ledger.extend(lease.id, more, Limits(None, None, view.slots, math.inf)):
                lease.extended += more

    def _bind(self, pending: Pending) -> None:
        snapshot = self.snapshot()
        request = self._with_hits(pending.request, snapshot)
        # What another request reads right now is not waited for.
        request = pending.request = replace(request, hits={k: replace(h, pending=0.0) for k, h in request.hits.items()})
        found = decide(self.plan, request, snapshot, self.now, 0.0)
        costs = [(one.total, one.backend) for one in found.trace.candidates if one.total is not None]
        view = snapshot.view(min(costs)[1]) if costs else None
        if view is None:
            self._decline(found)
            return
        opened = Snapshot(snapshot.now, (_opened(view, request.n),))
        decision = decide(self.plan, request, opened, self.now, 0.0)
        assert decision.verdict is Verdict.ADMIT, decision.trace
        assert self._admit(decision, opened)


def _opened(view: BackendView, sequences: int) -> BackendView:
    """The backend as if it had room for anything."""
    return replace(
        view,
        backend=replace(view.backend, queued_prefill=math.inf),
        slots=max(view.slots, view.running + sequences),
        headroom=1e6,
        foreign=0,
        overcommitted=False,
        strained=False,
    )


class BoundOnArrival(GatewayPolicy):
    """The gateway's estimates, ledger, learning and costs, without its queue."""

    desk_of: ClassVar[type[Desk]] = _Unheld
