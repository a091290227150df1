"""The ledger of one process, in its memory."""

from __future__ import annotations

from gateway.core.footprint import Footprint
from gateway.core.ledger import Ledger, Limits, Refused, Reserved, Totals

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

    def __len__(self) -> int:
        """Leases that are not settled."""
        return len(self._ledger)

    async def reserve(
        self, lease: str, backend: str, footprint: Footprint, prefill_seconds: float, limits: Limits, now: float
    ) -> Reserved | Refused:
        """Enter a lease if there is room for it."""
        return self._ledger.reserve(lease, backend, footprint, prefill_seconds, limits, now)

    def totals(self, backend: str, now: float) -> Totals:
        """What the leases hold on that backend."""
        return self._ledger.totals(backend, now)
