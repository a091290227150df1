"""What clients have used: requests that run, and a bucket for each rate. Charged with a lease, put right when it ends.

The core of a store in memory; one that several gateways share keeps the same: an open charge for each lease, and what
is missing from each bucket.
"""

from __future__ import annotations

from typing import NamedTuple

from gateway.core.quota import Amounts, ClientLimits, Levels, Quota, Shortfall, shortfall
from gateway.core.token_bucket import Rate, TokenBucket

__all__ = ["ClientBook"]

_SPARE = 64
"""Buckets that are kept before full ones are looked for."""


class _Charge(NamedTuple):
    """Of one lease: whose it is, and what was taken under which rate."""

    client: str
    taken: tuple[tuple[Quota, float, Rate], ...]


class ClientBook:
    """One writer. A full bucket is as good as none, so what is idle is forgotten."""

    __slots__ = ("_buckets", "_open", "_running", "_sweep_at")

    def __init__(self) -> None:
        self._open: dict[str, _Charge] = {}
        self._running: dict[str, int] = {}
        self._buckets: dict[tuple[str, Quota], TokenBucket] = {}
        self._sweep_at = _SPARE

    def __len__(self) -> int:
        """Charges that are open."""
        return len(self._open)

    @property
    def buckets(self) -> int:
        """Buckets that are kept."""
        return len(self._buckets)

    def charge(
        self, lease: str, client: str, needs: Amounts, cost: Amounts, limits: ClientLimits, now: float
    ) -> Shortfall | None:
        """Take what a lease is expected to use, if the client's limits leave what it needs; else say what is missing.

        A refused charge takes nothing. Raises ValueError when the lease was charged before.
        """
        if lease in self._open:
            raise ValueError(f"lease {lease} was charged already")
        missing = shortfall(limits, self.levels(client, limits, now), needs)
        if missing is not None:
            return missing
        taken = tuple((quota, cost.get(quota, 0.0), rate) for quota, rate in limits.rates.items())
        for quota, amount, rate in taken:
            self._bucket(client, quota, rate, now).take(amount, now)
        self._open[lease] = _Charge(client, taken)
        self._running[client] = self._running.get(client, 0) + 1
        return None

    def refund(self, lease: str, used: Amounts, now: float) -> bool:
        """Close a charge: what was not used is given back, what was used beyond it is taken. True the first time."""
        charge = self._open.pop(lease, None)
        if charge is None:
            return False
        client = charge.client
        left = self._running[client] - 1
        if left:
            self._running[client] = left
        else:
            del self._running[client]
        for quota, amount, rate in charge.taken:
            self._bucket(client, quota, rate, now).take(used.get(quota, 0.0) - amount, now)
        return True

    def levels(self, client: str, limits: ClientLimits, now: float) -> Levels:
        """Where a client stands; its buckets hold to these limits from now on."""
        left: dict[Quota, float] = {}
        for quota, rate in limits.rates.items():
            bucket = self._buckets.get((client, quota))
            if bucket is None:
                left[quota] = rate.amount
            else:
                bucket.change(rate, now)
                left[quota] = bucket.level(now)
        return Levels(self._running.get(client, 0), left)

    def _bucket(self, client: str, quota: Quota, rate: Rate, now: float) -> TokenBucket:
        """The bucket, which keeps the rate that it has; a new one begins with `rate`."""
        bucket = self._buckets.get((client, quota))
        if bucket is None:
            if len(self._buckets) >= self._sweep_at:
                self._buckets = {key: kept for key, kept in self._buckets.items() if not kept.is_full(now)}
                self._sweep_at = 2 * len(self._buckets) + _SPARE
            bucket = self._buckets[client, quota] = TokenBucket(rate, now)
        return bucket
