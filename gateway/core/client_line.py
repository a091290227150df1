"""Who waits for the limits of a client: what stands before a request there, and when one that is refused may come.

The line that a client's own buckets make; that for backends is in `core.line`.
"""

from __future__ import annotations

import math

from gateway.core.client_gate import ClientGate
from gateway.core.fair_share import cost_of
from gateway.core.prefix.chain import Chain
from gateway.core.promises import Promises
from gateway.core.quota import Amounts, Quota, Shortfall
from gateway.core.request import Request

__all__ = ["ClientLine"]

_BUCKETS = 2
"""Whole buckets that may be promised before somebody is told the same as the one before."""


class ClientLine:
    """Requests and tokens that wait for each client, and those that were told to come back. One writer."""

    __slots__ = ("_promises", "_sums", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[str, int]] = {}
        self._sums: dict[str, tuple[int, int]] = {}
        self._promises = Promises()

    def enter(self, request: Request) -> None:
        """It waits from now on."""
        number, tokens = self._sums.get(request.client, (0, 0))
        self._waiting[request.id] = request.client, cost_of(request)
        self._sums[request.client] = number + 1, tokens + cost_of(request)

    def leave(self, request_id: str) -> None:
        """It waits no more; nothing happens when it did not."""
        found = self._waiting.pop(request_id, None)
        if found is None:
            return
        client, cost = found
        number, tokens = self._sums[client]
        if number > 1:
            self._sums[client] = number - 1, tokens - cost
        else:
            del self._sums[client]

    def comes(self, request: Request, chain: Chain, gate: ClientGate, now: float) -> Shortfall | None:
        """The limit that a request meets as it comes, behind those of its client that wait; None: it may start."""
        if request.attempt:
            return gate.short(request)
        self._promises.claim(request.client, chain.whole, now)
        return gate.short(request, self._before(request))

    def waits(self, request: Request, gate: ClientGate) -> Shortfall | None:
        """The limit that holds back a waiting request, or the others of its client before it; None: no limit does."""
        return gate.short(request, self._before(request))

    def come_back(self, request: Request, chain: Chain, short: Shortfall, now: float) -> int | None:
        """Whole seconds after which a refused request finds enough left for it; None where that can't be told.

        Those who are told so stand in a line too, a bounded one: not all of them may ever come.
        """
        if short.seconds is None or short.per is None:
            return None
        line = f"{short.quota} {request.client}"
        promised = min(self._promises.work(line, now), _BUCKETS * short.amount)
        again = max(1, math.ceil(short.seconds + promised * short.per / short.amount))
        work = cost_of(request) if short.quota is Quota.TOKENS else 1
        self._promises.make(request.client, chain.whole, line, work, now + again, now)
        return again

    def _before(self, request: Request) -> Amounts:
        """What its client's other requests need that wait."""
        number, tokens = self._sums.get(request.client, (0, 0))
        own = self._waiting.get(request.id)
        if own is not None:
            number, tokens = number - 1, tokens - own[1]
        return {Quota.REQUESTS: number, Quota.TOKENS: tokens}
