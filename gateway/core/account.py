"""Running totals of our own leases on one backend; every change is O(1)."""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["PRESSURE_TAU", "Account", "Booking", "Totals"]

PRESSURE_TAU = 20.0
"""Seconds over which sent prefill is remembered as pressure on running decodes (found by simulation)."""


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


class Booking:
    """One open lease: what it holds and how far it has come."""

    __slots__ = (
        "backend", "ceiling", "denied", "generated", "id", "kv", "linger_until", "output", "prompt", "sequences",
    )  # fmt: skip

    def __init__(
        self, id: str, backend: str, kv: int, output: int, prompt: int, sequences: int, ceiling: int = 0
    ) -> None:
        self.id = id
        self.backend = backend
        self.kv = kv
        self.output = output
        self.prompt = prompt
        self.sequences = sequences
        self.ceiling = ceiling
        self.generated = 0
        self.denied = False
        self.linger_until = 0.0

    @property
    def context(self) -> int:
        """Tokens that each decode step reads for it, over all its sequences."""
        return self.prompt * self.sequences + self.generated


class Account:
    """Sums over the leases of one backend."""

    __slots__ = (
        "_head_since", "_owed", "_prefilling", "_pressure", "_pressure_at",
        "decoding", "denied", "lingering", "reserved", "resident", "running",
    )  # fmt: skip

    def __init__(self) -> None:
        self.running = 0
        self.reserved = 0
        self.decoding = 0
        self.resident = 0
        self.denied = 0
        """Leases that outgrew their reservation and could not extend it."""
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

    def is_prefilling(self, lease: str) -> bool:
        """Say whether this lease waits for its first token."""
        return lease in self._prefilling

    def open(self, lease: Booking, prefill: float, now: float) -> None:
        """Book a lease whose prompt takes `prefill` seconds to read."""
        self.running += lease.sequences
        self.reserved += lease.kv
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

    def close(self, lease: Booking, now: float) -> None:
        """Take a lease out of prefill or decode; its slot and KV stay booked until `free`."""
        if not self.end_prefill(lease.id, now):
            self.decoding -= lease.sequences
            self.resident -= lease.context
        if lease.denied:
            lease.denied = False
            self.denied -= 1

    def free(self, lease: Booking) -> None:
        """Give the slot and the KV of a closed lease back."""
        self.running -= lease.sequences
        self.reserved -= lease.kv

    def totals(self, now: float) -> Totals:
        """These sums as a value."""
        lingering = sum(lease.sequences for lease in self.lingering.values()) if self.lingering else 0
        return Totals(
            self.running, self.reserved, self.decoding, self.resident,
            self.backlog(now), self.pressure(now), self.denied > 0, lingering,
        )  # fmt: skip
