"""Running totals of our own leases on one backend; every change is O(1)."""

from __future__ import annotations

import math
from typing import NamedTuple

from gateway.core.booking import Booking

__all__ = ["PRESSURE_TAU", "Account", "Totals"]

PRESSURE_TAU = 20.0
"""Seconds over which sent prefill is remembered as pressure on running decodes (found by simulation)."""
_UNSEEN = 64
"""Output tokens of a sequence that may not have been counted yet: streams are read every 64 events."""


class Totals(NamedTuple):
    """What our leases hold on one backend: sequences, tokens and seconds.

    All are zero when no lease is open or lingering, but for `prefill_pressure`: a memory that fades.

    A named tuple, since every snapshot makes one for each backend and they are made four times as fast.
    """

    running: int = 0
    reserved: int = 0
    decoding: int = 0
    resident: int = 0
    backlog: float = 0.0
    prefill_pressure: float = 0.0
    overcommitted: bool = False
    lingering: int = 0
    """Sequences of settled leases that the engine has not let go of yet; part of `running`."""
    held: int = 0
    """Tokens that the engine certainly holds for us now: prompts that were read, and what was generated of answers."""
    holdable: int = 0
    """Tokens that it may hold for us now at most: prompts of which no token has come may be in or not."""
    contexts: int = 0
    """Tokens of all sequences, prompts that are still being read included, and those of settled leases not."""


class Account:
    """Sums over the leases of one backend."""

    __slots__ = (
        "_head_since", "_owed", "_prefilling", "_pressure", "_pressure_at",
        "decoding", "denied", "held", "lingering", "maybe", "reserved", "resident", "running", "unread",
    )  # fmt: skip

    def __init__(self) -> None:
        self.running = 0
        self.reserved = 0
        self.decoding = 0
        self.resident = 0
        self.denied = 0
        """Leases that outgrew their reservation and could not extend it."""
        self.held = 0
        """Tokens of the leases past their first token, and of shared prefixes that outlived who read them."""
        self.maybe = 0
        """Tokens reserved for the leases before it, and for those that linger."""
        self.unread = 0
        """Context tokens of the leases before their first token."""
        self.lingering: dict[str, Booking] = {}
        self._prefilling: dict[str, float] = {}
        self._owed = 0.0
        self._head_since = 0.0
        self._pressure = 0.0
        self._pressure_at = 0.0

    def backlog(self, now: float) -> float:
        """Seconds of prefill left. Engines read prompts in turn, so time works off the first one's share only."""
        if not self._prefilling:
            return 0.0
        head = next(iter(self._prefilling.values()))
        return max(0.0, self._owed - min(max(0.0, now - self._head_since), head))

    def pressure(self, now: float) -> float:
        """Decayed sum of the prefill seconds sent."""
        if self._pressure == 0.0:
            return 0.0
        return self._pressure * math.exp(-max(0.0, now - self._pressure_at) / PRESSURE_TAU)

    def open(self, lease: Booking, prefill: float, now: float) -> None:
        """Book a lease whose prompt takes `prefill` seconds to read."""
        self.running += lease.sequences
        self.reserved += lease.kv
        self.maybe += lease.kv
        self.unread += lease.context
        if not self._prefilling:
            self._head_since = now
        self._prefilling[lease.id] = prefill
        self._owed += prefill
        self._pressure = self.pressure(now) + prefill
        self._pressure_at = now

    def end_prefill(self, lease: str, now: float) -> bool:
        """Take a lease out of the backlog; False when it is past its first token."""
        if lease not in self._prefilling:
            return False
        was_head = next(iter(self._prefilling)) == lease
        self._owed -= self._prefilling.pop(lease)
        if was_head:
            self._head_since = now
        if not self._prefilling:
            self._owed = 0.0  # drops what rounding left over
        return True

    def start_decode(self, lease: Booking) -> None:
        """Count a lease among those that every decode step reads."""
        self.decoding += lease.sequences
        self.resident += lease.context
        self.unread -= lease.context
        self.held += lease.held
        self.maybe -= lease.kv

    def grow(self, lease: Booking, tokens: int) -> None:
        """Count `tokens` more output tokens of a lease."""
        lease.generated += tokens
        if lease.id in self._prefilling:
            self.unread += tokens
        else:
            self.resident += tokens
            self.held += tokens

    def extend(self, lease: Booking, kv: int, output: int) -> None:
        """Reserve `kv` more tokens for a lease, so that `output` more may be generated."""
        lease.kv += kv
        lease.output += output
        self.reserved += kv
        if lease.id in self._prefilling:
            self.maybe += kv

    def correct(self, lease: Booking, prompt: int, kv: int) -> None:
        """Take over the engine's count of a prompt, and `kv` more tokens with it; negative: fewer."""
        before, kv = lease.held, max(kv, -lease.kv)
        more = (prompt - lease.prompt) * lease.sequences
        lease.recount(prompt, kv)
        self.reserved += kv
        if lease.id in self._prefilling:
            self.maybe += kv
            self.unread += more
        else:
            self.held += lease.held - before
            self.resident += more

    def orphan(self, tokens: int) -> None:
        """Tokens of a shared prefix stay reserved in nobody's name, or (negative) no longer do."""
        self.reserved += tokens
        self.held += tokens

    def close(self, lease: Booking, now: float) -> None:
        """Take a lease out of prefill or decode; its slot and KV stay booked until `free`."""
        if self.end_prefill(lease.id, now):
            self.unread -= lease.context
        else:
            self.decoding -= lease.sequences
            self.resident -= lease.context
            self.held -= lease.held
            self.maybe += lease.kv
        if lease.denied:
            lease.denied = False
            self.denied -= 1

    def free(self, lease: Booking) -> None:
        """Give the slot and the KV of a closed lease back."""
        self.running -= lease.sequences
        self.reserved -= lease.kv
        self.maybe -= lease.kv

    def totals(self, now: float) -> Totals:
        """These sums as a value."""
        lingering = sum(lease.sequences for lease in self.lingering.values()) if self.lingering else 0
        return Totals(
            self.running, self.reserved, self.decoding, self.resident,
            self.backlog(now), self.pressure(now), self.denied > 0, lingering,
            self.held, self.held + self.maybe + _UNSEEN * self.decoding, self.resident + self.unread,
        )  # fmt: skip
