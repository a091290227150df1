"""The gateway's own queue: bounded for each model, fair across classes and clients, first come first served inside.

Two levels of stride scheduling: the class, then the client, with the least service for its weight goes next. Service is
counted in tokens and charged when a request is dispatched, so one that leaves the queue costs nobody anything (virtual
token counter, OSDI'24: a client that returns is lifted to the least-served of those waiting).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush

from gateway.core.plan import ClassPolicy, QueueLimits
from gateway.core.request import Request

__all__ = ["Waiting"]

_REMEMBERED = 1024
"""Idle clients of a class whose counters are kept."""


class _Flow:
    """Requests of one class, client and model, in order of arrival; later attempts have a flow of their own."""

    __slots__ = ("client", "key", "klass", "model", "requests")

    def __init__(self, key: tuple[str, str, str, bool]) -> None:
        self.key = key
        self.klass, self.client, self.model, _ = key
        self.requests: dict[str, Request] = {}


class Waiting:
    """The waiting requests of one gateway. One writer; removal is O(1). Set `limits` and `classes` after a reload."""

    def __init__(self, limits: QueueLimits, classes: Mapping[str, ClassPolicy]) -> None:
        self.limits = limits
        self.classes = classes
        self._flows: dict[tuple[str, str, str, bool], _Flow] = {}
        self._of: dict[str, _Flow] = {}
        self._lengths: dict[str, int] = {}
        self._served: dict[str, float] = {}
        """By class: tokens dispatched over its weight."""
        self._clients: dict[str, dict[str, float]] = {}
        """By class and client: tokens dispatched."""

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
        return sum(_cost(request) for flow in flows for request in flow.requests.values())

    def offer(self, request: Request) -> bool:
        """Take a request in; False, and nothing happens, when the queue of its model is full.

        Raises ValueError when a request of this id waits already.
        """
        if request.id in self._of:
            raise ValueError(f"request {request.id} already waits")
        if self._lengths.get(request.model, 0) >= self.limits.length:
            return False
        key = (request.klass, request.client, request.model, request.attempt > 0)
        flow = self._flows.get(key)
        if flow is None:
            self._lift(request.klass, request.client)
            flow = self._flows[key] = _Flow(key)
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
            cost = _cost(request)
            self._served[flow.klass] += cost / self._weight(flow.klass)
            self._clients[flow.klass][flow.client] += cost
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

        In front, by arrival, stand those at the head of their class and client that waited longer than `limits.aging`.
        Don't change the queue while iterating: take what you need, then apply it.
        """
        aged: list[Request] = []
        for flow in self._flows.values():
            head = next(iter(flow.requests.values()))
            if now - head.arrival > self.limits.aging:
                aged.append(head)
        aged.sort(key=_arrival)
        yield from aged
        first = {request.id for request in aged}
        for request in self._fair():
            if request.id not in first:
                yield request

    def _fair(self) -> Iterator[Request]:
        """Play the dispatches through on copies of the counters."""
        lanes: dict[str, _Lane] = {}
        for flow in self._flows.values():
            lane = lanes.get(flow.klass)
            if lane is None:
                lane = lanes[flow.klass] = _Lane(self._clients[flow.klass])
            lane.add(flow)
        turns = [(self._served[klass], klass) for klass in lanes]
        heapify(turns)
        while turns:
            served, klass = heappop(turns)
            request = lanes[klass].next()
            if request is not None:
                heappush(turns, (served + _cost(request) / self._weight(klass), klass))
                yield request

    def _weight(self, klass: str) -> float:
        policy = self.classes.get(klass)
        return policy.weight if policy is not None else ClassPolicy(klass).weight

    def _lift(self, klass: str, client: str) -> None:
        """Bring a class and a client that were idle up to the least-served of those waiting: idling earns no credit."""
        waiting = {flow.klass for flow in self._flows.values()}
        if klass not in waiting:
            floor = min((self._served[k] for k in waiting), default=0.0)
            self._served[klass] = max(self._served.get(klass, 0.0), floor)
        counters = self._clients.setdefault(klass, {})
        busy = {flow.client for flow in self._flows.values() if flow.klass == klass}
        if client not in busy:
            floor = min((counters[c] for c in busy), default=0.0)
            counters[client] = max(counters.get(client, 0.0), floor)
        if len(counters) > _REMEMBERED + len(busy):
            for idle in [c for c in counters if c not in busy and c != client]:
                del counters[idle]


class _Lane:
    """One class being played through: its flows by what their client has been served."""

    __slots__ = ("_heap", "_iterators", "_served")

    def __init__(self, served: Mapping[str, float]) -> None:
        self._served = dict(served)
        self._heap: list[tuple[float, float, int]] = []
        self._iterators: list[tuple[str, Iterator[Request], Request]] = []

    def add(self, flow: _Flow) -> None:
        requests = iter(flow.requests.values())
        head = next(requests)
        self._iterators.append((flow.client, requests, head))
        heappush(self._heap, (self._served[flow.client], head.arrival, len(self._iterators) - 1))

    def next(self) -> Request | None:
        while self._heap:
            served, arrival, index = heappop(self._heap)
            client, requests, head = self._iterators[index]
            current = self._served[client]
            if current > served:
                # Another model's flow of this client was played since: its turn has moved back.
                heappush(self._heap, (current, arrival, index))
                continue
            self._served[client] = current + _cost(head)
            following = next(requests, None)
            if following is not None:
                self._iterators[index] = (client, requests, following)
                heappush(self._heap, (self._served[client], following.arrival, index))
            return head
        return None


def _arrival(request: Request) -> float:
    return request.arrival


def _cost(request: Request) -> int:
    """Tokens of work: the prompt and the expected output of every choice, on the model asked for."""
    estimate = next(iter(request.estimates.values()), None)
    if estimate is None:
        return 1
    return estimate.prompt + estimate.output * request.n
