"""Turns by service received: who has been served least goes next.

Service is in device seconds once a model's are known, in tokens before: tokens cost differently on each device, and
cached ones cost almost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heapreplace

from gateway.core.flow import due_of
from gateway.core.request import Request

__all__ = ["Counters", "Stream", "cost_of", "in_turn", "output_of"]

_REMEMBERED = 1024
"""Idle names whose counters are kept."""
_NOTHING = 1e-9
"""Service below which what is left is rounding."""


class Counters:
    """Service received by name: a virtual token counter (OSDI'24).

    A name that returns from idling is lifted to the least-served of those waiting, or to where service stood when the
    last of them left: idling earns no credit. What others were charged and have not been given yet does not lift it,
    since most of them turn out to take less.
    """

    __slots__ = ("_open", "_reached", "served")

    def __init__(self) -> None:
        self.served: dict[str, float] = {}
        self._open: dict[str, float] = {}
        """Of what runs: charged, and not known to have been taken."""
        self._reached = 0.0

    def activate(self, name: str, waiting: Iterable[str]) -> None:
        """Bring a name up to date that begins to wait beside those `waiting`, which it is not one of."""
        beside = list(waiting)
        open_ = self._open
        floor = min((self.served[other] - open_.get(other, 0.0) for other in beside), default=self._reached)
        self.served[name] = max(self.served.get(name, 0.0), floor)
        if len(self.served) > _REMEMBERED + len(beside) + len(open_):
            self.served = {kept: self.served[kept] for kept in {*beside, name, *open_} if kept in self.served}

    def charge(self, name: str, service: float, *, known: bool) -> None:
        """Count what a waiting name is given; if it is only expected and not `known`, it is settled later."""
        self._reached = max(self._reached, self.served[name] - self._open.get(name, 0.0))
        self.served[name] += service
        if not known:
            self._open[name] = self._open.get(name, 0.0) + service

    def settle(self, name: str, charged: float, took: float) -> None:
        """Put right what a name was charged: what it was given it for has ended, and took so much."""
        if name in self.served:
            self.served[name] += took - charged
        left = self._open.get(name, 0.0) - charged
        if left > _NOTHING:
            self._open[name] = left
        else:
            self._open.pop(name, None)


Stream = tuple[float, float, Iterator[Request]]
"""Of one name: service received, the weight that divides what it is given, and its requests in order."""


def in_turn(streams: Iterable[Stream], price: Callable[[Request], float]) -> Iterator[Request]:
    """Play the dispatches through: the stream that has been served least gives the next request, and is charged for it.

    Of equals the one whose next request is due first.
    """
    heap = []
    for number, (served, weight, requests) in enumerate(streams):
        first = next(requests, None)
        if first is not None:
            heap.append((served, due_of(first), number, first, weight, requests))
    heapify(heap)
    while heap:
        served, _, number, request, weight, requests = heap[0]
        yield request
        following = next(requests, None)
        if following is None:
            heappop(heap)
        else:
            paid = served + price(request) / weight
            heapreplace(heap, (paid, due_of(following), number, following, weight, requests))


def cost_of(request: Request) -> int:
    """Tokens of work: the prompt and the expected output of every choice, on the model asked for."""
    estimate = next(iter(request.estimates.values()), None)
    if estimate is None:
        return 1
    return estimate.prompt + estimate.output * request.n


def output_of(request: Request) -> int:
    """Tokens of that work that are output."""
    estimate = next(iter(request.estimates.values()), None)
    return 0 if estimate is None else estimate.output * request.n
