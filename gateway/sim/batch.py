"""What one iteration computes, and the contract of the schedulers that fill it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from gateway.sim.sequence import Sequence

__all__ = ["Batch", "Scheduler"]


@dataclass(slots=True)
class Batch:
    """Sequences that decode one token each, and chunks of prompts."""

    decodes: list[Sequence] = field(default_factory=list)
    chunks: list[tuple[Sequence, int]] = field(default_factory=list)
    """(sequence, tokens of it to compute now)."""
    preempted: list[Sequence] = field(default_factory=list)
    failed: list[Sequence] = field(default_factory=list)
    """Sequences that the engine gives up, its KV cache being full."""
    repeat: int = 1
    """Iterations that the same decodes go through in a row; more than 1 only without chunks."""


class Scheduler(Protocol):
    """Admission, batching and KV memory of an engine."""

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence."""
        ...

    def remove(self, sequence: Sequence) -> None:
        """Drop a sequence, queued or running, and release its memory."""
        ...

    def schedule(self, now: float, max_repeat: int) -> Batch:
        """Choose what the next iteration computes; at most `max_repeat` iterations of pure decoding at once."""
        ...

    def computed(self, sequence: Sequence) -> None:
        """Take note that `sequence.computed` has grown."""
        ...

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        ...

    @property
    def waiting(self) -> int:
        """Sequences queued."""
        ...

    @property
    def kv_usage(self) -> float:
        """Share of the KV memory that sequences hold, 0 to 1."""
        ...

    def __iter__(self) -> Iterator[Sequence]:
        """All sequences, running ones first."""
        ...
