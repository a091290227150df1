"""The door of the queue: who gets in, who is turned away there, and what those who get nothing are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateway.core.admission import refuse
from gateway.core.client_gate import ClientGate
from gateway.core.client_line import ClientLine
from gateway.core.decide import decide
from gateway.core.decision import Decision, Verdict
from gateway.core.experience import Experience
from gateway.core.line import Line
from gateway.core.plan import Plan
from gateway.core.prefix.chain import Chain
from gateway.core.quota import Shortfall
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.core.snapshot import Snapshot

__all__ = ["Door"]


class Door:
    """Between those who come and the `line` for backends, with the one that each of the `clients` makes for itself.

    One writer. Whoever has no limits of its own needs no `gate`.
    """

    __slots__ = ("_experience", "_plan", "clients", "line")

    def __init__(self, plan: Plan, experience: Experience) -> None:
        self.line = Line(plan, experience)
        self.clients = ClientLine()
        self._plan = plan
        self._experience = experience

    def replan(self, plan: Plan) -> None:
        """Take another policy for who comes from now on."""
        self._plan = plan
        self.line.replan(plan)

    def comes(
        self,
        request: Request,
        chain: Chain,
        gate: ClientGate | None,
        now: float,
        fleet: Callable[[], Snapshot],
        roll: Callable[[], float],
    ) -> tuple[Request, Decision | None]:
        """The request as it takes its place, and the no that it gets at once, if it gets one.

        `fleet` is looked at only if somebody stands before it.

        It is turned away at once for what nothing here can ever serve, or would only after too long: whoever waits
        behind others, or for its own limits, may not be looked at soon.
        """
        line = self.line
        request = line.welcome(request, chain, now)
        short = self.clients.comes(request, chain, gate, now) if gate is not None else None
        alone = not line.waiting.length(request.model)
        if alone:
            self._experience.drained(request.model, now).restart(now)
            if short is None:
                return request, None
        snapshot, chance = fleet(), roll()
        decision = decide(self._plan, request, snapshot, now, chance)
        if decision.verdict is Verdict.REJECT:
            return request, decision
        if short is not None and short.seconds is not None and now + short.seconds > request.deadline:
            return request, self._over_quota(request, chain, short, refuse(request, Reason.OVER_QUOTA, now, chance))
        if not alone and line.is_long(request, snapshot):
            return request, self.full(request, chain, snapshot, chance)
        return request, None

    def full(self, request: Request, chain: Chain, snapshot: Snapshot, roll: float) -> Decision:
        """The no of a queue without a place, with a time for which one is kept."""
        again = self.line.come_back(request, chain, snapshot, roll)
        return refuse(request, Reason.QUEUE_FULL, snapshot.now, roll, again)

    def leaves(
        self, request: Request, chain: Chain, gate: ClientGate | None, snapshot: Snapshot, decision: Decision
    ) -> Decision:
        """The same no for one whose time is up, with the limit that held it back and when to come again."""
        short = self.clients.waits(request, gate) if gate is not None else None
        if short is None or short.seconds is None:
            decision = replace(decision, retry_after=self.line.come_back(request, chain, snapshot, decision.roll))
        return decision if short is None else self._over_quota(request, chain, short, decision)

    def _over_quota(self, request: Request, chain: Chain, short: Shortfall, decision: Decision) -> Decision:
        """The same no for a limit of the client's own, with the time at which it leaves enough, if that is known."""
        again = self.clients.come_back(request, chain, short, decision.now)
        told = decision.retry_after if again is None else again
        return replace(decision, reason=Reason.OVER_QUOTA, quota=short, retry_after=told)
