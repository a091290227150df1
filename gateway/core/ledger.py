"""What our own requests hold on each backend, right now: every lease is entered once and settled once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gateway.core.account import Account, Totals
from gateway.core.booking import Booking
from gateway.core.footprint import Footprint
from gateway.core.limits import Limits, shortage
from gateway.core.reasons import Reason

__all__ = ["EXTEND_AT", "ON_THE_WAY", "Ledger", "Limits", "Refused", "Reserved", "Totals"]

EXTEND_AT = 0.9
"""Share of the reserved output that is used up when a lease should be extended."""
ON_THE_WAY = 0.25
"""Seconds after which a lease counts as known to its engine."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """The lease is entered; `totals` include it."""

    lease: str
    backend: str
    totals: Totals


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was entered: the totals moved on since the decision. `limit`, `needed`: tokens, sequences or seconds."""

    reason: Reason
    limit: float
    needed: float
    totals: Totals


class Ledger:
    """All open leases of this gateway. One writer; `now` is seconds on one monotonic clock.

    `reserve` reads the totals and writes the lease in one step, so a decision made on an old snapshot can't overfill
    a backend.
    """

    __slots__ = ("_accounts", "_leases")

    def __init__(self) -> None:
        self._leases: dict[str, Booking] = {}
        self._accounts: dict[str, Account] = {}

    def __len__(self) -> int:
        """Leases that are not settled."""
        return len(self._leases)

    def __contains__(self, lease: object) -> bool:
        """Say whether this lease is open."""
        return lease in self._leases

    def reserve(
        self, lease: str, backend: str, footprint: Footprint, prefill_seconds: float, limits: Limits, now: float
    ) -> Reserved | Refused:
        """Enter a lease if the backend has room for it under `limits`, else say what is missing.

        Raises ValueError when a lease of this id is open.
        """
        if lease in self._leases:
            raise ValueError(f"lease {lease} is already open")
        account = self._accounts.get(backend)
        if account is None:
            account = self._accounts[backend] = Account()
        missing = shortage(account, footprint, limits, now)
        if missing is not None:
            return Refused(*missing, totals=account.totals(now))
        entry = Booking(lease, backend, footprint, now)
        self._leases[lease] = entry
        account.open(entry, prefill_seconds, now)
        return Reserved(lease, backend, account.totals(now))

    def first_token(self, lease: str, now: float) -> bool:
        """Move a lease from prefill to decode; False when it is there already or settled."""
        entry = self._leases.get(lease)
        if entry is None or not self._accounts[entry.backend].end_prefill(lease, now):
            return False
        self._accounts[entry.backend].start_decode(entry)
        return True

    def grow(self, lease: str, tokens: int) -> bool:
        """Count `tokens` more output tokens, of all choices; True when the lease should be extended now."""
        entry = self._leases.get(lease)
        if entry is None:
            return False
        self._accounts[entry.backend].grow(entry, tokens)
        return entry.generated >= EXTEND_AT * entry.output

    def extend(self, lease: str, tokens: int, limits: Limits) -> bool:
        """Reserve `tokens` more for a running lease, if they fit; no more than it can ever hold.

        When they don't, nothing is killed: the backend counts as overcommitted and takes nothing new until this lease
        is extended or settled.
        """
        entry = self._leases.get(lease)
        if entry is None:
            return False
        account = self._accounts[entry.backend]
        asked = tokens
        if entry.ceiling:
            tokens = max(0, min(tokens, entry.ceiling - entry.kv))
        allowed = limits.alone if account.running == entry.sequences else limits.kv
        if tokens and allowed is not None and account.reserved + tokens > allowed:
            if not entry.denied:
                entry.denied = True
                account.denied += 1
            return False
        account.extend(entry, tokens, asked)
        if entry.denied:
            entry.denied = False
            account.denied -= 1
        return True

    def correct(self, lease: str, prompt: int, tokens: int) -> bool:
        """Take over the engine's own count of a prompt: the lease holds `tokens` more than it reserved, or fewer.

        Never refused, since they are in the engine already. False when the lease is settled.
        """
        entry = self._leases.get(lease)
        if entry is None:
            return False
        self._accounts[entry.backend].correct(entry, prompt, tokens)
        return True

    def settle(
        self, lease: str, now: float, linger_until: float | None = None, orphaned: int = 0, others: int = 0
    ) -> bool:
        """Close a lease, whatever became of it. True the first time, False ever after.

        `orphaned` tokens of shared prefixes stay reserved (or, negative, no longer are) in nobody's name.

        With `linger_until` its slot and KV stay booked, for an engine that goes on after an abort, until `release`,
        `observe` or `expire` gives them back; `others` sequences are not ours of those that it runs now.
        """
        entry = self._leases.pop(lease, None)
        if entry is None:
            return False
        account = self._accounts[entry.backend]
        account.close(entry, now)
        account.orphan(orphaned)
        if linger_until is not None and linger_until > now:
            entry.linger_until, entry.closed_at, entry.others = linger_until, now, others
            account.lingering[lease] = entry
        else:
            account.free(entry)
        return True

    def release(self, lease: str) -> bool:
        """Give back what a settled lease lingers on; False when it doesn't."""
        for account in self._accounts.values():
            entry = account.lingering.pop(lease, None)
            if entry is not None:
                account.free(entry)
                return True
        return False

    def observe(self, backend: str, engine_running: int, asked: float = math.inf) -> int:
        """Compare with the number of sequences that the engine itself says it has; give back what it has let go.

        It was asked at that moment: what was sent since may not be among them, and what ended since was still. Others'
        traffic is taken to be what it was when the last of ours were abandoned. Returns the sequences given back,
        oldest leases first.
        """
        account = self._accounts.get(backend)
        if account is None or not account.lingering:
            return 0
        lingering = [entry for entry in account.lingering.values() if entry.closed_at <= asked]
        others = min((entry.others for entry in lingering), default=0)
        late = sum(
            e.sequences for e in self._leases.values() if e.backend == backend and e.entered_at > asked - ON_THE_WAY
        )
        gone, freed = account.running - late + others - engine_running, 0
        for entry in lingering:
            if freed + entry.sequences > gone:
                break
            self.release(entry.id)
            freed += entry.sequences
        return freed

    def expire(self, now: float) -> int:
        """Give back what has lingered past its bound; returns the number of leases."""
        past = [e.id for a in self._accounts.values() for e in a.lingering.values() if e.linger_until <= now]
        for lease in past:
            self.release(lease)
        return len(past)

    def totals(self, backend: str, now: float) -> Totals:
        """What our leases hold on that backend."""
        account = self._accounts.get(backend)
        return account.totals(now) if account is not None else Totals()

    def open_on(self, backend: str) -> list[str]:
        """Ids of the open leases on that backend, oldest first."""
        return [entry.id for entry in self._leases.values() if entry.backend == backend]
