"""The line for each model: those who wait here, and behind them those who were told to come back.

How long it is in seconds decides who is turned away at the door, and what the ones who are turned away are told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import islice

from gateway.core.experience import Experience
from gateway.core.fair_share import cost_of
from gateway.core.lease import Ahead
from gateway.core.plan import Plan
from gateway.core.prefix.chain import Chain
from gateway.core.promises import Promises
from gateway.core.request import Request
from gateway.core.scheduling import RETRY_AFTER_MAX, retry_after
from gateway.core.snapshot import Snapshot
from gateway.core.waiting import Waiting

__all__ = ["Line", "Queued"]

_SPREAD = 0.1
"""Part of a promised wait by which those who are told the same are spread."""
_MARGIN = 1.0
"""Seconds more than it should take: of requests of mixed sizes a large one may be the next to end."""
_COUNTED = 64
"""Requests that are looked at one by one when somebody asks who is ahead; behind them all that wait are."""


@dataclass(slots=True)
class Queued:
    """What waits for one model: requests, tokens of work, seconds in which it should be served, the first arrival.

    `clients`: requests by class and client.
    """

    requests: int
    tokens: int
    seconds: float
    oldest: float
    clients: dict[tuple[str, str], int] = field(default_factory=dict)


class Line:
    """What waits, and what was promised. One writer."""

    def __init__(self, plan: Plan, experience: Experience) -> None:
        self.waiting = Waiting(plan.queue, plan.classes)
        self._promises = Promises()
        self._experience = experience

    def replan(self, plan: Plan) -> None:
        """Take another policy for who waits from now on."""
        self.waiting.limits, self.waiting.classes = plan.queue, plan.classes

    def welcome(self, request: Request, chain: Chain, now: float) -> Request:
        """The request as it takes its place: before all others, if it was told to come back now."""
        if request.attempt:
            return request
        promised = self._promises.claim(request.client, chain.whole, now)
        return request if promised is None else replace(request, promised=promised)

    def is_long(self, request: Request, snapshot: Snapshot) -> bool:
        """Say whether so much waits for its model that it would take too long (`queue.work`)."""
        most = self.waiting.limits.work
        if most is None or request.promised is not None or not self.waiting.length(request.model):
            return False
        return self._seconds(request, snapshot, self.waiting.work(request.model)) > most

    def ahead(self, request: Request, snapshot: Snapshot) -> Ahead:
        """Who goes before a waiting request, as things stand."""
        model, number, work = request.model, 0, 0
        for other in islice(self.waiting.in_order(snapshot.now), _COUNTED):
            if other.id == request.id:
                break
            if other.model == model:
                number, work = number + 1, work + cost_of(other)
        else:
            number, work = self.waiting.length(model) - 1, self.waiting.work(model) - cost_of(request)
        return Ahead(number, self._seconds(request, snapshot, work))

    def by_model(self, snapshot: Snapshot) -> dict[str, Queued]:
        """What waits, by model; it looks at every request, so it is for people's eyes and not for each turn."""
        found: dict[str, Queued] = {}
        for flow in self.waiting.flows():
            klass, client, _, model = flow.key
            queued = found.get(model)
            if queued is None:
                tokens = self.waiting.work(model)
                seconds = self._seconds(next(iter(flow)), snapshot, tokens)
                queued = found[model] = Queued(0, tokens, seconds, math.inf)
            queued.requests += len(flow)
            queued.oldest = min(queued.oldest, flow.oldest)
            queued.clients[klass, client] = queued.clients.get((klass, client), 0) + len(flow)
        return found

    def come_back(self, request: Request, chain: Chain, snapshot: Snapshot, roll: float) -> int:
        """Seconds, 1 to 59, after which one that is turned away finds a place, which is kept for it if it can be."""
        now, model = snapshot.now, request.model
        work = self.waiting.work(model) + self._promises.work(model, now)
        seconds = self._seconds(request, snapshot, work) * (1.0 + _SPREAD * roll)
        if seconds > RETRY_AFTER_MAX:
            return retry_after(seconds, 1.0, roll)
        again = min(RETRY_AFTER_MAX, math.ceil(seconds + _MARGIN))
        self._promises.make(request.client, chain.whole, model, cost_of(request), now + again, now)
        return again

    def _seconds(self, request: Request, snapshot: Snapshot, work: int) -> float:
        # What waits says how fast it goes, and not who asks: a short request clears no queue of long ones sooner.
        return self._experience.seconds_to_drain(work, request, snapshot, self.waiting.typical(request.model))
