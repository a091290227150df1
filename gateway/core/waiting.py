"""The gateway's own queue: bounded for each model, fair across classes, clients and sessions, earliest deadline first.

Three levels of stride scheduling: the class, then the client, then its session, with the least service for its weight
goes next; within a session the request that is due first. Service is charged when a request is dispatched, so one that
leaves the queue costs nobody anything, and put right when it has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from operator import itemgetter

from gateway.core.fair_share import Stream, cost_of, in_turn, output_of
from gateway.core.flow import Flow, FlowKey, Place
from gateway.core.plan import ClassPolicy, QueueLimits
from gateway.core.prices import Prices
from gateway.core.request import Request
from gateway.core.shares import Shares
from gateway.core.soonest import Soonest

__all__ = ["PROMOTED", "Order", "Waiting"]

PROMOTED = 20
"""One dispatch in so many goes to the request that waited longest, whatever its class and client have been served."""
_Sessions = dict[str, dict[str, Flow]]
"""Flows by session and model."""


class Order:
    """The waiting requests in the order in which they should be considered, found one by one.

    Don't change the queue while iterating, but for `Waiting.replace`: take what you need, then apply it.
    """

    __slots__ = ("_requests", "skipped")

    def __init__(self) -> None:
        self.skipped: set[str] = set()
        """Models and clients, of whom no further request is of interest."""
        self._requests: Iterator[Request] = iter(())

    def __iter__(self) -> Iterator[Request]:
        return self._requests

    def __next__(self) -> Request:
        return next(self._requests)

    def skip_model(self, model: str) -> None:
        """Pass over the requests for a model from now on."""
        self.skipped.add(f"model {model}")

    def skip_client(self, client: str) -> None:
        """Pass over the requests of a client from now on."""
        self.skipped.add(f"client {client}")


class Waiting:
    """The waiting requests of one gateway. One writer. Set `limits` and `classes` after a reload."""

    def __init__(self, limits: QueueLimits, classes: Mapping[str, ClassPolicy]) -> None:
        self.limits = limits
        self.classes = classes
        self.prices = Prices()
        self._lanes: dict[str, dict[str, _Sessions]] = {}
        """Flows by class, client, session and model; none is empty."""
        self._of: dict[str, Flow] = {}
        self._lengths: dict[str, int] = {}
        self._work: dict[str, int] = {}
        self._written: dict[str, int] = {}
        """Tokens of `_work` that are expected output."""
        self._number = 0
        self._shares = Shares()
        self._promised: dict[str, float] = {}
        """By id: when those were told to come back who have."""
        self._arrivals = Soonest(self._of)
        self._deadlines = Soonest(self._of)
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

    def flows(self) -> Iterator[Flow]:
        """Every line, none of them empty, in no order. Don't change the queue meanwhile."""
        for clients in self._lanes.values():
            for sessions in clients.values():
                for flows in sessions.values():
                    yield from flows.values()

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
        return flow.get(request_id) if flow is not None else None

    def work(self, model: str) -> int:
        """Tokens (prompt and expected output) that wait for that model."""
        return self._work.get(model, 0)

    def typical(self, model: str) -> tuple[int, int] | None:
        """Tokens of the mean prompt and of the mean output of those who wait for that model; None when nobody does."""
        length = self._lengths.get(model, 0)
        if not length:
            return None
        written = self._written[model]
        return (self._work[model] - written) // length, written // length

    def offer(self, request: Request) -> bool:
        """Take a request in; False, and nothing happens, when the queue of its model is full.

        Later attempts are always taken: they were let in before, and no more of them come than there were places. So
        are those who come back when they were told to.
        Raises ValueError when a request of this id waits already.
        """
        if request.id in self._of:
            raise ValueError(f"request {request.id} already waits")
        if not request.attempt and request.promised is None and self.is_full(request):
            return False
        key = FlowKey(request.klass, request.client, request.session or "", request.model)
        flow = self._open(key)
        self._number += 1
        flow.add(request, self._number)
        self._of[request.id] = flow
        if request.promised is not None:
            self._promised[request.id] = request.promised
        self._lengths[key.model] = self._lengths.get(key.model, 0) + 1
        self._work[key.model] = self._work.get(key.model, 0) + cost_of(request)
        self._written[key.model] = self._written.get(key.model, 0) + output_of(request)
        self._arrivals.add(request.arrival, request.id, len(self._of))
        self._deadlines.add(request.deadline, request.id, len(self._of))
        return True

    def is_full(self, request: Request) -> bool:
        """Say whether the queue of its model has no place for it: too many requests wait, or too many tokens.

        One that is alone has a place however long it is.
        """
        length, tokens = self._lengths.get(request.model, 0), self.limits.tokens
        if length >= self.limits.length:
            return True
        return tokens is not None and length > 0 and self.work(request.model) + cost_of(request) > tokens

    def replace(self, request: Request) -> None:
        """Put newer facts about a waiting request in its place; KeyError when it doesn't wait."""
        flow = self._of[request.id]
        known = flow.get(request.id)
        self._work[flow.key.model] += cost_of(request) - cost_of(known)
        self._written[flow.key.model] += output_of(request) - output_of(known)
        flow.replace(request)

    def remove(self, request_id: str, *, dispatched: bool = False, service: float | None = None) -> Request | None:
        """Take a request out; when it was dispatched, its class, client and session are charged for it.

        `service`: device seconds that it is expected to take where it goes; None: as much as others for that model.
        """
        flow = self._of.pop(request_id, None)
        if flow is None:
            return None
        request, key = flow.take(request_id), flow.key
        self._promised.pop(request_id, None)
        if dispatched:
            self._since = 0 if request_id == self._front else self._since + 1
            if service is not None:
                self.prices.learn(key.model, cost_of(request), service)
            price = self.prices.of(request) if service is None else service
            self._shares.charge(key, price, self._weight(key.klass), known=service is None)
        left = self._lengths[key.model] - 1
        if left:
            self._lengths[key.model] = left
            self._work[key.model] -= cost_of(request)
            self._written[key.model] -= output_of(request)
        else:
            del self._lengths[key.model], self._work[key.model], self._written[key.model]
        if not flow:
            self._close(key)
        return request

    def settle(self, request: Request, charged: float, took: float) -> None:
        """Put right what a dispatched request was charged: it has ended, and took so many device seconds."""
        key = FlowKey(request.klass, request.client, request.session or "", request.model)
        self._shares.settle(key, charged, took, self._weight(key.klass))

    def expired(self, now: float) -> list[Request]:
        """The requests whose deadline has come, earliest first."""
        first = self._deadlines.first()
        if first is None or first[0] > now:
            return []
        return [self._of[name].get(name) for name in self._deadlines.until(now)]

    def in_order(self, now: float) -> Order:
        """The waiting requests, the one to be considered first first.

        In front, once in 20 dispatches, stands the one that waited longest, if longer than `limits.aging`: it stays
        there until it has room. More of them would undo the shares, since under load all have aged. Then come those
        who were told to come back now: they have waited elsewhere.
        """
        order = Order()
        self._front = None
        first = self._arrivals.first() if self._since >= PROMOTED - 1 else None
        if first is not None and now - first[0] > self.limits.aging:
            self._front = first[1]
        order._requests = self._played(order.skipped, self._front)
        return order

    def _played(self, skipped: set[str], front: str | None) -> Iterator[Request]:
        """The dispatches, played through on copies of the counters."""
        if front is not None:
            yield self._of[front].get(front)
        first = {front} if front is not None else set()
        for name in sorted(self._promised, key=self._promised.__getitem__):
            if name not in first:
                first.add(name)
                yield self._of[name].get(name)
        if len(self._of) == 1:  # an idle gateway's arrival: nothing to put in order
            for flow in self._of.values():
                for request in flow:
                    if request.id not in first:
                        yield request
            return
        classes = (
            (self._shares.classes.served[klass], self._weight(klass), self._clients(klass, skipped))
            for klass in self._lanes
        )
        for request in in_turn(classes, self.prices.of):
            if request.id not in first:
                yield request

    def _clients(self, klass: str, skipped: set[str]) -> Iterator[Request]:
        served = self._shares.clients[klass].served

        def lane(client: str, sessions: _Sessions) -> Stream:
            return served[client], 1.0, self._sessions(klass, client, sessions, skipped)

        return in_turn((lane(*each) for each in self._lanes[klass].items()), self.prices.of)

    def _sessions(self, klass: str, client: str, sessions: _Sessions, skipped: set[str]) -> Iterator[Request]:
        mark = f"client {client}"
        streams = [(name, _by_place(flows, skipped, mark)) for name, flows in sessions.items()]
        if len(streams) == 1:
            return streams[0][1]
        served = self._shares.sessions[klass, client].served
        return in_turn(((served[name], 1.0, stream) for name, stream in streams), self.prices.of)

    def _weight(self, klass: str) -> float:
        policy = self.classes.get(klass)
        weight = policy.weight if policy is not None else ClassPolicy(klass).weight
        return max(weight, _LEAST_WEIGHT)

    def _open(self, key: FlowKey) -> Flow:
        """The flow of that key; its class, client and session begin to wait if they don't yet."""
        lanes = self._lanes
        if key.klass not in lanes:
            self._shares.classes.activate(key.klass, lanes)
            lanes[key.klass] = {}
        clients = lanes[key.klass]
        if key.client not in clients:
            self._shares.clients_of(key.klass).activate(key.client, clients)
            clients[key.client] = {}
        sessions = clients[key.client]
        if key.session not in sessions:
            self._shares.sessions_of(key.klass, key.client, self._waits).activate(key.session, sessions)
            sessions[key.session] = {}
        flows = sessions[key.session]
        if key.model not in flows:
            flows[key.model] = Flow(key)
        return flows[key.model]

    def _waits(self, klass: str, client: str) -> bool:
        return client in self._lanes.get(klass, ())

    def _close(self, key: FlowKey) -> None:
        """Forget an empty flow, and whatever waits no more with it."""
        clients = self._lanes[key.klass]
        sessions = clients[key.client]
        del sessions[key.session][key.model]
        if not sessions[key.session]:
            del sessions[key.session]
        if not sessions:
            del clients[key.client]
        if not clients:
            del self._lanes[key.klass]


_LEAST_WEIGHT = 1e-9
"""Of a class of weight 0: it is served when no other waits."""


def _by_place(flows: Mapping[str, Flow], skipped: set[str], client: str) -> Iterator[Request]:
    """The requests of one session, over all models, as they are due."""
    lines = [_unless(flow, skipped, client) for flow in flows.values()]
    for _, request in lines[0] if len(lines) == 1 else merge(*lines, key=itemgetter(0)):
        yield request


def _unless(flow: Flow, skipped: set[str], client: str) -> Iterator[tuple[Place, Request]]:
    """One line, until its model or client is passed over."""
    model = f"model {flow.key.model}"
    for entry in flow.placed():
        if skipped and (model in skipped or client in skipped):
            return
        yield entry
