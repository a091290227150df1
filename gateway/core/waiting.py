"""The gateway's own queue: bounded for each model, fair across classes and clients, first come first served inside.

Two levels of stride scheduling: the class, then the client, with the least service for its weight goes next. Service is
counted in tokens and charged when a request is dispatched, so one that leaves the queue costs nobody anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush

from gateway.core.fair_share import Counters, Flow, Lane, cost_of
from gateway.core.plan import ClassPolicy, QueueLimits
from gateway.core.request import Request

__all__ = ["PROMOTED", "Waiting"]

PROMOTED = 20
"""One dispatch in so many goes to the request that waited longest, whatever its class and client have been served."""


class Waiting:
    """The waiting requests of one gateway. One writer; removal is O(1). Set `limits` and `classes` after a reload."""

    def __init__(self, limits: QueueLimits, classes: Mapping[str, ClassPolicy]) -> None:
        self.limits = limits
        self.classes = classes
        self._flows: dict[tuple[str, str, str, bool], Flow] = {}
        self._of: dict[str, Flow] = {}
        self._lengths: dict[str, int] = {}
        self._classes_served = Counters()
        """Tokens over the weight of the class."""
        self._clients_served: dict[str, Counters] = {}
        """By class: tokens of each client."""
        self._front: str | None = None
        """The request that was put in front last."""
        self._since = PROMOTED
        """Dispatches since one of those."""

    def __len__(self) -> int:
        """Requests waiting, of all models."""
        return len(self._of)

    def __contains__(self, request_id: object) -> bool:
        """Say whether this request waits."""
        return request_id in self._of

    def length(self, model: str) -> int:
        """Requests waiting for the model of that name."""
        return self._lengths.get(model, 0)

    @property
    def lengths(self) -> dict[str, int]:
        """Requests waiting, by model name."""
        return dict(self._lengths)

    def get(self, request_id: str) -> Request | None:
        """The waiting request of that id."""
        flow = self._of.get(request_id)
        return flow.requests[request_id] if flow is not None else None

    def work(self, model: str) -> int:
        """Tokens (prompt and expected output) that wait for that model."""
        flows = (flow for flow in self._flows.values() if flow.model == model)
        return sum(cost_of(request) for flow in flows for request in flow.requests.values())

    def offer(self, request: Request) -> bool:
        """Take a request in; False, and nothing happens, when the queue of its model is full.

        Later attempts are always taken: they were let in before, and no more of them come than there were places.
        Raises ValueError when a request of this id waits already.
        """
        if request.id in self._of:
            raise ValueError(f"request {request.id} already waits")
        if not request.attempt and self._lengths.get(request.model, 0) >= self.limits.length:
            return False
        key = (request.klass, request.client, request.model, request.attempt > 0)
        flow = self._flows.get(key)
        if flow is None:
            self._activate(request.klass, request.client)
            flow = self._flows[key] = Flow(key)
        flow.requests[request.id] = request
        self._of[request.id] = flow
        self._lengths[request.model] = self._lengths.get(request.model, 0) + 1
        return True

    def replace(self, request: Request) -> None:
        """Put newer facts about a waiting request in its place; KeyError when it doesn't wait."""
        self._of[request.id].requests[request.id] = request

    def remove(self, request_id: str, *, dispatched: bool = False) -> Request | None:
        """Take a request out; when it was dispatched, its class and client are charged for it."""
        flow = self._of.pop(request_id, None)
        if flow is None:
            return None
        request = flow.requests.pop(request_id)
        if dispatched:
            self._since = 0 if request_id == self._front else self._since + 1
            cost = cost_of(request)
            self._classes_served.charge(flow.klass, cost / self._weight(flow.klass))
            self._clients_served[flow.klass].charge(flow.client, cost)
        left = self._lengths[flow.model] - 1
        if left:
            self._lengths[flow.model] = left
        else:
            del self._lengths[flow.model]
        if not flow.requests:
            del self._flows[flow.key]
        return request

    def in_order(self, now: float) -> Iterator[Request]:
        """The waiting requests, the one to be considered first first.

        In front, once in 20 dispatches, stands the one that waited longest, if longer than `limits.aging`: it stays
        there until it has room. More of them would undo the shares, since under load all have aged. Don't change the
        queue while iterating: take what you need, then apply it.
        """
        if len(self._of) == 1:  # an idle gateway's arrival: nothing to put in order
            (flow,) = self._flows.values()
            yield from flow.requests.values()
            return
        self._front = None
        if self._flows and self._since >= PROMOTED:
            oldest = min((next(iter(flow.requests.values())) for flow in self._flows.values()), key=_arrival)
            if now - oldest.arrival > self.limits.aging:
                self._front = oldest.id
                yield oldest
        for request in self._fair():
            if request.id != self._front:
                yield request

    def _fair(self) -> Iterator[Request]:
        """Play the dispatches through on copies of the counters."""
        lanes: dict[str, Lane] = {}
        for flow in self._flows.values():
            lane = lanes.get(flow.klass)
            if lane is None:
                lane = lanes[flow.klass] = Lane(self._clients_served[flow.klass].served)
            lane.add(flow)
        turns = [(self._classes_served.served[klass], klass) for klass in lanes]
        heapify(turns)
        while turns:
            served, klass = heappop(turns)
            request = lanes[klass].next()
            if request is not None:
                heappush(turns, (served + cost_of(request) / self._weight(klass), klass))
                yield request

    def _weight(self, klass: str) -> float:
        policy = self.classes.get(klass)
        return policy.weight if policy is not None else ClassPolicy(klass).weight

    def _activate(self, klass: str, client: str) -> None:
        flows = self._flows.values()
        self._classes_served.activate(klass, {flow.klass for flow in flows})
        counters = self._clients_served.setdefault(klass, Counters())
        counters.activate(client, {flow.client for flow in flows if flow.klass == klass})


def _arrival(request: Request) -> float:
    return request.arrival
