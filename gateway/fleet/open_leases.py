"""The leases that are open now, and the work that each backend has done for us."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.core.lease import Ended, Lease

__all__ = ["OpenLeases", "Work"]


@dataclass(slots=True)
class Work:
    """What one backend did for us since it was added: leases that ended, and tokens.

    `prefilled` prompt tokens were computed, as far as it is known what came from a cache; `generated` came out.
    """

    ended: int = 0
    prefilled: int = 0
    generated: int = 0


class OpenLeases:
    """Every lease from its grant to its settlement. One writer."""

    __slots__ = ("_leases", "_work")

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._work: dict[str, Work] = {}

    def __len__(self) -> int:
        """Leases that are open."""
        return len(self._leases)

    def __iter__(self) -> Iterator[Lease]:
        """Them, oldest first."""
        return iter(self._leases.values())

    def work(self, backend: str) -> Work:
        """What that backend has done; a value to read, not to keep."""
        return self._work.get(backend) or Work()

    def granted(self, lease: Lease) -> None:
        """A request is sent."""
        self._leases[lease.id] = lease

    def answered(self, lease: Lease, now: float) -> None:
        """Its first token came: its prompt was read."""
        lease.answered_at = now
        footprint = lease.decision.footprint
        if footprint is not None:
            self._on(lease.backend).prefilled += footprint.uncached

    def generated(self, lease: Lease, tokens: int) -> None:
        """So many more tokens of its answer came."""
        self._on(lease.backend).generated += tokens

    def settled(self, lease: Lease, ended: Ended) -> None:
        """It is over; what its engine counted beyond what was seen is added."""
        if self._leases.pop(lease.id, None) is None:
            return
        work = self._on(lease.backend)
        work.ended += 1
        work.generated += max(0, (ended.output_tokens or 0) - lease.generated)
        if lease.answered_at is None and ended.prompt_tokens is not None:
            work.prefilled += max(0, ended.prompt_tokens - (ended.cached_tokens or 0))

    def forget(self, backend: str) -> None:
        """That backend is gone."""
        self._work.pop(backend, None)

    def _on(self, backend: str) -> Work:
        found = self._work.get(backend)
        if found is None:
            found = self._work[backend] = Work()
        return found
