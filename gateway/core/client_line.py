"""Who waits for the limits of a client: what stands before a request there, and when one that is refused may come.

The line that a client's own bucket makes; that for backends is in `core.line`.
"""

from __future__ import annotations

import math

from gateway.core.client_gate import ClientGate
from gateway.core.fair_share import cost_of
from gateway.core.prefix.chain import Chain
from gateway.core.promises import Promises
from gateway.core.quota import Shortfall
from gateway.core.request import Request

__all__ = ["ClientLine"]


class ClientLine:
    """Tokens that wait for each client, and those of requests that were told to come back. One writer."""

    __slots__ = ("_promises", "_tokens", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[str, int]] = {}
        self._tokens: dict[str, int] = {}
        self._promises = Promises()

    def enter(self, request: Request) -> None:
        """It waits from now on."""
        tokens = cost_of(request)
        self._waiting[request.id] = request.client, tokens
        self._tokens[request.client] = self._tokens.get(request.client, 0) + tokens

    def leave(self, request_id: str) -> None:
        """It waits no more; nothing happens when it did not."""
        found = self._waiting.pop(request_id, None)
        if found is None:
            return
        client, tokens = found
        left = self._tokens[client] - tokens
        if left:
            self._tokens[client] = left
        else:
            del self._tokens[client]

    def comes(self, request: Request, chain: Chain, gate: ClientGate, now: float) -> Shortfall | None:
        """The limit that a request meets as it comes, behind those of its client that wait; None: it may start.

        Who was told to come back at this time only stands behind those who wait.
        """
        if request.attempt:
            return gate.short(request)
        before = self._tokens.get(request.client, 0)
        if self._promises.claim(request.client, chain.whole, now) is None:
            before += self._promises.work(request.client, now)
        return gate.short(request, before)

    def waits(self, request: Request, gate: ClientGate) -> Shortfall | None:
        """The limit that holds back a waiting request, or the others of its client before it; None: no limit does."""
        before = self._tokens.get(request.client, 0) - self._waiting.get(request.id, ("", 0))[1]
        return gate.short(request, before)

    def come_back(self, request: Request, chain: Chain, short: Shortfall, now: float) -> int | None:
        """Whole seconds after which a refused request finds enough left for it; None where that can't be told."""
        if short.seconds is None:
            return None
        again = max(1, math.ceil(short.seconds))
        self._promises.make(request.client, chain.whole, request.client, cost_of(request), now + again, now)
        return again
