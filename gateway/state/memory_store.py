"""The ledger and the clients' accounts of one process, in its memory."""

from __future__ import annotations

from gateway.core.client_book import ClientBook
from gateway.core.footprint import Footprint
from gateway.core.ledger import Ledger, Limits, Refused, Reserved, Totals
from gateway.core.quota import Amounts, ClientLimits, Shortfall

__all__ = ["MemoryStore"]


class MemoryStore:
    """A store that never fails and never waits. Implements `state.store.Store`."""

    def __init__(self) -> None:
        self._ledger = Ledger()
        self.first_token = self._ledger.first_token
        self.grow = self._ledger.grow
        self.extend = self._ledger.extend
        self.correct = self._ledger.correct
        self.settle = self._ledger.settle
        self.observe = self._ledger.observe
        self.expire = self._ledger.expire
        self._clients = ClientBook()
        self.refund = self._clients.refund
        self.levels = self._clients.levels

    def __len__(self) -> int:
        """Leases that are not settled, and charges that are not."""
        return len(self._ledger) + len(self._clients)

    async def reserve(
        self, lease: str, backend: str, footprint: Footprint, prefill_seconds: float, limits: Limits, now: float
    ) -> Reserved | Refused:
        """Enter a lease if there is room for it."""
        return self._ledger.reserve(lease, backend, footprint, prefill_seconds, limits, now)

    async def charge(
        self, lease: str, client: str, needs: Amounts, cost: Amounts, limits: ClientLimits, now: float
    ) -> Shortfall | None:
        """Charge a lease to its client if its limits allow it."""
        return self._clients.charge(lease, client, needs, cost, limits, now)

    def totals(self, backend: str, now: float) -> Totals:
        """What the leases hold on that backend."""
        return self._ledger.totals(backend, now)
