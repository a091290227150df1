"""What the routes of an emulated engine need to know of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import xxhash

from gateway.sim.driver import Driver
from gateway.sim.fault import Fault
from gateway.sim.profile import EngineProfile

__all__ = ["Service"]


@dataclass(slots=True)
class Service:
    """One served model and its engine."""

    profile: EngineProfile
    model: str
    driver: Driver
    started_at: int
    """Seconds since the Unix epoch."""
    answer_tokens: int | None = None
    """Natural length of every answer; None where it depends on the prompt."""
    max_queued_requests: int | None = None
    fault: Fault = field(default_factory=Fault)
    _serials: Iterator[int] = field(default_factory=itertools.count)

    def queue_is_full(self, more: int) -> bool:
        """True when `more` requests would exceed the limit on those inside, running ones included."""
        return self.max_queued_requests is not None and self.driver.in_flight + more > self.max_queued_requests

    def next_serial(self) -> str:
        """A name for a request, 16 hexadecimal digits, unlike any other of this service."""
        return xxhash.xxh3_64_hexdigest(f"{self.model} {self.started_at} {next(self._serials)}".encode())
