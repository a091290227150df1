"""A cache of whole sequences, one a slot, not shared between requests (llama.cpp's server).

A request takes the slot with the longest common prefix, else the one used longest ago. A host cache (`--cache-ram`)
holds more sequences than there are slots; then `sequences` counts both.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.prefix.chain import Chain
from gateway.core.prefix.reuse import EDGES, Match, Segment, bin_of

__all__ = ["SlotResidency"]

_CONTINUES = 0.5
"""A prompt that keeps at least this share of a sequence replaces it; else the sequence stays in the host cache."""


@dataclass(slots=True, eq=False)
class _Sequence:
    chain: Chain
    tokens: int
    busy: bool = False
    confirmed: bool = True


class SlotResidency:
    """Remembers the last `sequences` prompts, newest last, within the cache's tokens.

    A busy slot serves nobody else, so its prefix matches nothing until its request ends. The reuse distance is counted
    in sequences: the share of slots that were used since.
    """

    def __init__(self, capacity_tokens: int, sequences: int) -> None:
        self._sequences: list[_Sequence] = []
        self._limit = max(1, sequences)
        self._capacity = max(1, capacity_tokens)

    @property
    def entries(self) -> int:
        """Index entries in use."""
        return sum(len(held.chain.hashes) for held in self._sequences)

    def resize(self, capacity_tokens: int, entries: int) -> None:  # noqa: ARG002 - bounded by sequences
        """Set the cache's size in tokens."""
        self._capacity = max(1, capacity_tokens)
        self._evict()

    def match(self, chain: Chain) -> Match:
        """The idle sequence that shares most with this prompt."""
        held = self._best(chain)
        if held is None:
            return Match(chain.total)
        since = len(self._sequences) - 1 - self._sequences.index(held)
        shared = chain.common_bytes(held.chain)
        return Match(chain.total, shared, (Segment(shared, min(len(EDGES) - 1, bin_of(since / self._limit))),))

    def insert(self, chain: Chain, tokens: int, cached: int | None = None) -> None:  # noqa: ARG002 - no clock here
        """Hold this prompt in the slot whose sequence it continues, else in the one used longest ago."""
        self._take(_Sequence(chain, tokens))

    def begin(self, chain: Chain, tokens: int) -> None:
        """Occupy a slot: what it held before the common prefix ends is gone."""
        if self._busy(chain) is None:
            self._take(_Sequence(chain, tokens, busy=True, confirmed=False))

    def confirm(self, chain: Chain, cached: int | None = None) -> None:  # noqa: ARG002 - no clock here
        """Note that the slot holds the whole prompt."""
        held = self._busy(chain)
        if held is not None:
            held.confirmed = True

    def end(self, chain: Chain) -> None:
        """Free the slot; without a first token it holds nothing to count on."""
        held = self._busy(chain)
        if held is None:
            return
        held.busy = False
        if not held.confirmed:
            self._sequences.remove(held)

    def advance(self, tokens: int) -> None:
        """Answers stay in their own slot: nothing to count."""

    def clear(self) -> None:
        """Forget all sequences."""
        self._sequences.clear()

    def _take(self, new: _Sequence) -> None:
        held = self._best(new.chain) or self._same(new.chain)
        if held is not None and held.chain.common_bytes(new.chain) >= _CONTINUES * held.chain.indexed:
            self._sequences.remove(held)
        self._sequences.append(new)
        self._evict()

    def _best(self, chain: Chain) -> _Sequence | None:
        best, most = None, 0
        for held in reversed(self._sequences):
            if not held.busy:
                shared = chain.common_bytes(held.chain)
                if shared > most:
                    best, most = held, shared
        return best

    def _same(self, chain: Chain) -> _Sequence | None:
        """The same prompt again, where it is too short to have blocks."""
        for held in self._sequences:
            if not held.busy and held.chain.head == chain.head and held.chain.total == chain.total:
                return held
        return None

    def _busy(self, chain: Chain) -> _Sequence | None:
        for held in self._sequences:
            if held.busy and held.chain is chain:
                return held
        return None

    def _evict(self) -> None:
        """Drop idle sequences, oldest first, until count and tokens fit."""
        tokens = sum(held.tokens for held in self._sequences)
        for held in list(self._sequences):
            if len(self._sequences) <= self._limit and tokens <= self._capacity:
                return
            if not held.busy and held is not self._sequences[-1]:
                self._sequences.remove(held)
                tokens -= held.tokens
