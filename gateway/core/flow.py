"""Requests that wait in one line, the one that is due first first."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from gateway.core.request import Request

__all__ = ["Flow", "FlowKey", "Place", "due_of"]

Place = tuple[float, int]
"""When a request is due, and its number in the order of coming: lower goes first."""


class FlowKey(NamedTuple):
    """Whose line it is: requests of one class, client, session and model."""

    klass: str
    client: str
    session: str
    model: str


class Flow:
    """The waiting requests of one key, earliest deadline first; taking one in or out takes O(log n) comparisons."""

    __slots__ = ("_line", "_places", "key")

    def __init__(self, key: FlowKey) -> None:
        self.key = key
        self._line: list[tuple[float, int, Request]] = []
        self._places: dict[str, Place] = {}

    def __len__(self) -> int:
        """Requests in the line."""
        return len(self._line)

    def __iter__(self) -> Iterator[Request]:
        """Them in order."""
        for _, _, request in self._line:
            yield request

    @property
    def oldest(self) -> float:
        """When the one that has waited longest came; the line must not be empty."""
        return min([request.arrival for _, _, request in self._line])

    def add(self, request: Request, number: int) -> None:
        """Take one in."""
        due = due_of(request)
        self._places[request.id] = (due, number)
        insort(self._line, (due, number, request))

    def get(self, request_id: str) -> Request:
        """The request of that id; KeyError when it is not in this line."""
        return self._line[self._index(request_id)][2]

    def replace(self, request: Request) -> None:
        """Put newer facts in its place; KeyError when it is not in this line."""
        index = self._index(request.id)
        self._line[index] = (*self._line[index][:2], request)

    def take(self, request_id: str) -> Request:
        """Take one out; KeyError when it is not in this line."""
        index = self._index(request_id)
        del self._places[request_id]
        return self._line.pop(index)[2]

    def placed(self, first: int = 0) -> Iterator[tuple[Place, Request]]:
        """Each with its place, from the one at index `first` on."""
        for entry in islice(self._line, first, None):
            yield entry[:2], entry[2]

    def _index(self, request_id: str) -> int:
        return bisect_left(self._line, self._places[request_id])


def due_of(request: Request) -> float:
    """When it should have its first token. Later attempts count from arrival: they have waited once already."""
    return request.arrival if request.attempt or not request.due else request.due
