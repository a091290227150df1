"""Which of the waiting requests the limits of their clients let start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gateway.core.quota import Amounts, ClientLimits, Levels, Shortfall, needs_of, shortfall
from gateway.core.request import Request

__all__ = ["ClientGate"]


class ClientGate:
    """For one look at the queue: levels are read once, and what is let through counts at once against those behind.

    `limits` and `levels` by client; a client without limits passes.
    """

    __slots__ = ("_levels", "_limits", "_seen")

    def __init__(
        self, limits: Callable[[str], ClientLimits | None], levels: Callable[[str, ClientLimits], Levels]
    ) -> None:
        self._limits = limits
        self._levels = levels
        self._seen: dict[str, tuple[ClientLimits | None, Levels]] = {}

    def short(self, request: Request, before: Amounts | None = None) -> Shortfall | None:
        """The limit that holds a request back now, None when it may start. `before`: what others have first."""
        limits, levels = self._standing(request.client)
        if limits is None:
            return None
        if before:
            left = {quota: had - before.get(quota, 0.0) for quota, had in levels.left.items()}
            levels = Levels(levels.running, left)
        return shortfall(limits, levels, needs_of(request))

    def within(
        self, waiting: Iterable[Request], now: float, skip: Callable[[str], None] | None = None
    ) -> Iterator[Request]:
        """Leave out what its client's own limits hold back, but for those whose time is up at `now`.

        What is held back holds back its client's others: small ones would keep a large one from its turn for ever.
        `skip` is told the name of such a client.
        """
        held: set[str] = set()
        for request in waiting:
            limits, levels = self._standing(request.client)
            if limits is None:
                yield request
                continue
            needs = needs_of(request)
            if request.client not in held and shortfall(limits, levels, needs) is None:
                left = {quota: had - needs.get(quota, 0.0) for quota, had in levels.left.items()}
                self._seen[request.client] = limits, Levels(levels.running + 1, left)
                yield request
            elif now >= request.deadline:
                yield request
            else:
                held.add(request.client)
                if skip is not None:
                    skip(request.client)

    def _standing(self, client: str) -> tuple[ClientLimits | None, Levels]:
        found = self._seen.get(client)
        if found is None:
            limits = self._limits(client)
            found = self._seen[client] = limits, _NOTHING if limits is None else self._levels(client, limits)
        return found


_NOTHING = Levels(0, {})
