"""What the dispatcher asks of the ledger and of the clients' accounts, wherever they are kept."""

from __future__ import annotations

from typing import Protocol

from gateway.core.footprint import Footprint
from gateway.core.ledger import Limits, Refused, Reserved, Totals
from gateway.core.quota import Amounts, ClientLimits, Levels, Shortfall

__all__ = ["Limits", "Refused", "Reserved", "Store", "Totals"]


class Store(Protocol):
    """Leases and their totals.

    `now` is seconds on the gateway's monotonic clock; tokens and seconds as in `core.ledger`.

    Only `reserve` and `charge` may wait: they are the reads that gate a write, and happen where the shared totals are.
    Raises StoreError when a shared store does not answer.
    """

    async def reserve(
        self, lease: str, backend: str, footprint: Footprint, prefill_seconds: float, limits: Limits, now: float
    ) -> Reserved | Refused:
        """Enter a lease if there is room for it under `limits`, else say what is missing."""

    def first_token(self, lease: str, now: float) -> bool:
        """Move a lease from prefill to decode."""

    def grow(self, lease: str, tokens: int) -> bool:
        """Count so many more output tokens; True when the reservation should be extended."""

    def extend(self, lease: str, tokens: int, limits: Limits) -> bool:
        """Reserve more tokens for a running lease, if they fit."""

    def correct(self, lease: str, prompt: int, tokens: int) -> bool:
        """The engine counted the prompt's tokens: its lease holds so many more than it reserved, or fewer."""

    def settle(
        self, lease: str, now: float, linger_until: float | None = None, orphaned: int = 0, others: int = 0
    ) -> bool:
        """Close a lease; True the first time. `orphaned` tokens of shared prefixes stay reserved in nobody's name.

        With `linger_until` its place stays booked until then, or until its engine, which runs `others` of others' now,
        is observed to have let it go.
        """

    def observe(self, backend: str, engine_running: int, asked: float) -> int:
        """The engine, asked at that moment, says how many sequences it has: what it let go is given back; how many."""

    def expire(self, now: float) -> int:
        """Give back what lingered long enough; returns how many sequences."""

    def totals(self, backend: str, now: float) -> Totals:
        """What the leases hold on that backend."""

    async def charge(
        self, lease: str, client: str, needs: Amounts, cost: Amounts, limits: ClientLimits, now: float
    ) -> Shortfall | None:
        """Charge a lease's expected cost to its client if its limits leave what it needs, else say what is missing.

        The client has one request more running. Raises ValueError when the lease was charged before.
        """

    def refund(self, lease: str, used: Amounts, now: float) -> bool:
        """Put a charge right by what was used, and count one request less; True the first time."""

    def levels(self, client: str, limits: ClientLimits, now: float) -> Levels:
        """What runs for a client, and what is left of its rates, as far as is known here; `limits` hold from now on."""
