"""The limits of clients over the life of a lease: charged when it is granted, put right when it ends.

Nothing is charged before that, so what is refused, or leaves the queue, costs its client nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.core.client_gate import ClientGate
from gateway.core.lease import Ended, Lease
from gateway.core.quota import ClientLimits, Levels, Shortfall, needs_of, whole_left
from gateway.core.usage import expected_usage, nothing, usage
from gateway.state.store import Store

__all__ = ["Quotas"]

_NONE = ClientLimits()


class Quotas:
    """Limits by client, as the file has them now, and what the store says is left of them."""

    def __init__(self, limits: Mapping[str, ClientLimits], store: Store, now: Callable[[], float]) -> None:
        self._limits = limits
        self._store = store
        self._now = now

    def replan(self, limits: Mapping[str, ClientLimits]) -> None:
        """Hold to other limits from now on; what was spent stays spent."""
        self._limits = limits
        for client, each in limits.items():
            self._store.levels(client, each, self._now())

    def gate(self) -> ClientGate:
        """For one look at the queue."""
        return ClientGate(self._limits.get, lambda client, limits: self._store.levels(client, limits, self._now()))

    async def charge(self, lease: Lease) -> Shortfall | None:
        """Charge a lease; what is missing, and nothing charged, when its client's limits don't allow it any more.

        Raises StoreError.
        """
        request = lease.request
        limits = self._limits.get(request.client, _NONE)
        needs, cost = (needs_of(request), expected_usage(lease)) if limits.rates else (nothing(), nothing())
        return await self._store.charge(lease.id, request.client, needs, cost, limits, self._now())

    def settle(self, lease: Lease, ended: Ended) -> None:
        """Give back what a lease did not use; its client has one running less."""
        now = self._now()
        self._store.refund(lease.id, usage(lease, ended, now - lease.granted_at), now)

    def standing(self, client: str) -> tuple[ClientLimits, Levels] | None:
        """The limits of a client, and what is left of them; None for one that has no rates."""
        limits = self._limits.get(client)
        if limits is None or not limits.rates:
            return None
        return limits, self._store.levels(client, limits, self._now())

    def gauges(self) -> dict[tuple[str, str], tuple[float, float]]:
        """What is left and the whole, by client and rate, for all that have rates."""
        found: dict[tuple[str, str], tuple[float, float]] = {}
        for client, limits in self._limits.items():
            if limits.rates:
                left = self._store.levels(client, limits, self._now()).left
                found |= {(client, str(quota)): (left[quota], rate.amount) for quota, rate in limits.rates.items()}
        return found

    def rows(self) -> list[dict[str, Any]]:
        """One mapping for each configured client, JSON-ready; `full_in` seconds."""
        return [self._row(client, limits) for client, limits in self._limits.items()]

    def _row(self, client: str, limits: ClientLimits) -> dict[str, Any]:
        levels = self._store.levels(client, limits, self._now())
        return {
            "name": client,
            "running": levels.running,
            "running_limit": limits.running,
            "limits": [
                {
                    "name": str(quota),
                    "amount": rate.amount,
                    "seconds": rate.seconds,
                    "left": whole_left(levels.left[quota]),
                    "full_in": round(rate.wait(levels.left[quota], rate.amount), 3),
                }
                for quota, rate in limits.rates.items()
            ],
        }
