"""Turns by service received: who has been served least, in tokens, goes next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from gateway.core.request import Request

__all__ = ["Counters", "Flow", "Lane", "cost_of"]

_REMEMBERED = 1024
"""Idle names whose counters are kept."""


class Counters:
    """Service received by name: a virtual token counter (OSDI'24).

    A name that returns from idling is lifted to the least-served of those waiting, or to where service stood when the
    last of them left: idling earns no credit.
    """

    __slots__ = ("_reached", "served")

    def __init__(self) -> None:
        self.served: dict[str, float] = {}
        self._reached = 0.0

    def activate(self, name: str, waiting: set[str]) -> None:
        """Bring a name up to date that begins to wait beside those `waiting`."""
        if name in waiting:
            return
        floor = min((self.served[other] for other in waiting), default=self._reached)
        self.served[name] = max(self.served.get(name, 0.0), floor)
        if len(self.served) > _REMEMBERED + len(waiting):
            self.served = {kept: self.served[kept] for kept in (*waiting, name)}

    def charge(self, name: str, service: float) -> None:
        """Count what a waiting name was given."""
        self._reached = max(self._reached, self.served[name])
        self.served[name] += service


class Flow:
    """Requests of one class, client and model, in order of arrival; later attempts have a flow of their own."""

    __slots__ = ("client", "key", "klass", "model", "requests")

    def __init__(self, key: tuple[str, str, str, bool]) -> None:
        self.key = key
        self.klass, self.client, self.model, _ = key
        self.requests: dict[str, Request] = {}


class Lane:
    """One class being played through: its flows by what their client has been served."""

    __slots__ = ("_heap", "_iterators", "_served")

    def __init__(self, served: Mapping[str, float]) -> None:
        self._served = dict(served)
        self._heap: list[tuple[float, float, int]] = []
        self._iterators: list[tuple[str, Iterator[Request], Request]] = []

    def add(self, flow: Flow) -> None:
        """Let a flow, which must not be empty, take part."""
        requests = iter(flow.requests.values())
        head = next(requests)
        self._iterators.append((flow.client, requests, head))
        heappush(self._heap, (self._served[flow.client], head.arrival, len(self._iterators) - 1))

    def next(self) -> Request | None:
        """Play one dispatch; None when all are through."""
        while self._heap:
            served, arrival, index = heappop(self._heap)
            client, requests, head = self._iterators[index]
            current = self._served[client]
            if current > served:
                # Another model's flow of this client was played since: its turn has moved back.
                heappush(self._heap, (current, arrival, index))
                continue
            self._served[client] = current + cost_of(head)
            following = next(requests, None)
            if following is not None:
                self._iterators[index] = (client, requests, following)
                heappush(self._heap, (self._served[client], following.arrival, index))
            return head
        return None


def cost_of(request: Request) -> int:
    """Tokens of work: the prompt and the expected output of every choice, on the model asked for."""
    estimate = next(iter(request.estimates.values()), None)
    if estimate is None:
        return 1
    return estimate.prompt + estimate.output * request.n
