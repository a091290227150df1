"""What the dispatcher asks of the ledger, wherever it is kept."""

from __future__ import annotations

from typing import Protocol

from gateway.core.ledger import Limits, Refused, Reserved, Totals

__all__ = ["Limits", "Refused", "Reserved", "Store", "Totals"]


class Store(Protocol):
    """Leases and their totals. `now` is seconds on the gateway's monotonic clock; tokens and seconds as in `core.ledger`.

    Only `reserve` may wait: it is the read that gates a write, and it happens where the shared totals are.
    Raises StoreError when a shared store does not answer.
    """

    async def reserve(
        self,
        lease: str,
        backend: str,
        *,
        kv: int,
        sequences: int,
        prefill_seconds: float,
        prompt: int,
        limits: Limits,
        now: float,
        shared: int = 0,
    ) -> Reserved | Refused:
        """Enter a lease if there is room for it under `limits`, else say what is missing."""

    def first_token(self, lease: str, now: float) -> bool:
        """Move a lease from prefill to decode."""

    def grow(self, lease: str, tokens: int) -> bool:
        """Count output tokens; True when the reservation should be extended."""

    def extend(self, lease: str, kv: int, limits: Limits) -> bool:
        """Reserve more tokens for a running lease, if they fit."""

    def settle(self, lease: str, now: float, linger_until: float | None = None) -> bool:
        """Close a lease; True the first time."""

    def observe(self, backend: str, running: int, now: float) -> None:
        """The engine itself says how many requests it runs: lingering places above that are free."""

    def release(self, now: float) -> None:
        """Free lingering places whose time has passed."""

    def totals(self, backend: str, now: float) -> Totals:
        """What the leases hold on that backend."""
