"""Limits of one client, counted here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from gateway.core.request import Request

__all__ = ["RunningByClient"]


class RunningByClient:
    """Requests of each client that hold a lease now: nothing is charged before `enter`, and `leave` undoes it."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: dict[str, int] = {}

    def enter(self, client: str) -> None:
        """Count one more request of this client."""
        self._running[client] = self._running.get(client, 0) + 1

    def leave(self, client: str) -> None:
        """Count one request less; KeyError when the client has none."""
        left = self._running[client] - 1
        if left:
            self._running[client] = left
        else:
            del self._running[client]

    def room(self, client: str, limit: int | None) -> float:
        """How many more requests this client may have running under `limit`; infinite without one."""
        return math.inf if limit is None else limit - self._running.get(client, 0)

    def has_room(self, request: Request) -> bool:
        """Whether its client's own limit lets this request run now."""
        return self.room(request.client, request.client_limit) > 0

    def within_limits(
        self, waiting: Iterable[Request], now: float, skip: Callable[[str], None] | None = None
    ) -> Iterator[Request]:
        """Leave out what its client's own limit holds back, but for those whose time is up at `now`.

        `skip` is told the name of a client of whom nothing else will be taken.
        """
        taken: dict[str, int] = {}
        for request in waiting:
            before = taken.get(request.client, 0)
            if self.room(request.client, request.client_limit) > before:
                taken[request.client] = before + 1
                yield request
            elif now >= request.deadline:
                yield request
            elif skip is not None:
                skip(request.client)
