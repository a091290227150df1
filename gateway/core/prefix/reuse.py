"""Reuse distance: how much a cache took in since a block was last used, in cache sizes.

An LRU cache keeps a block iff fewer than its capacity of tokens came in since. So what predicts residency is that
distance, not age in seconds (a TTL) nor a guessed mirror of the cache.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from gateway.core.prefix.chain import Chain

__all__ = ["EDGES", "FORGOTTEN", "Match", "Segment", "bin_of"]

EDGES = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0)
"""Upper edges of the distance bins, in cache sizes."""
FORGOTTEN = EDGES[-1]
"""At this distance a block is taken for evicted."""


def bin_of(distance: float) -> int:
    """The bin of a distance below FORGOTTEN."""
    return bisect_right(EDGES, distance)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a matched prefix, up to `end` bytes, whose blocks have reuse distances of one bin."""

    end: int
    bin: int


@dataclass(frozen=True, slots=True)
class Match:
    """What one backend is believed to hold of a prompt; all in bytes from its start.

    `bytes` were computed there and may be resident; `segments` say how far back that was, nearest first. `pinned` of
    them are in use by a running request, so they are resident for certain and take no new room. `pending` are being
    computed now, by a request that has no first token yet. `total` is the prompt.
    """

    total: int
    bytes: int = 0
    segments: tuple[Segment, ...] = ()
    pinned: int = 0
    pending: int = 0
    displaced: Chain | None = None
    """The last prompt of the conversation that would lose its place to this one; None: there is room beside all."""
    displaced_tokens: int = 0

    @property
    def share(self) -> float:
        """The part of the prompt that matched, 0 to 1."""
        return self.bytes / self.total if self.total else 0.0
