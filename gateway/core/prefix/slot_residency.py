"""A cache of whole sequences, one a slot, not shared between requests (llama.cpp's server).

A request takes the slot with the longest common prefix, else an empty one, else the one used longest ago. A host cache
(`--cache-ram`) holds sequences that lost their slot, but doesn't tell how many: so more are remembered than there are
slots, and what comes of those is for PrefixTrust to learn.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.prefix.chain import Chain
from gateway.core.prefix.reuse import EDGES, Match, Segment, bin_of

__all__ = ["SlotResidency"]

_CONTINUES = 0.5
"""A prompt that keeps at least this share of a sequence replaces it; else the sequence stays in the host cache."""
_SIMILAR = 0.1
"""Part of a prompt that a slot must hold to be chosen for it (llama-server's `--slot-prompt-similarity`)."""
_REMEMBERED = 8
"""Sequences that are remembered, in slots."""


@dataclass(slots=True, eq=False)
class _Sequence:
    chain: Chain
    tokens: int
    busy: bool = False
    confirmed: bool = True


class SlotResidency:
    """Remembers the last prompts, newest last: those in the `sequences` slots, and as many again as lost theirs.

    A busy slot serves nobody else, so its prefix matches nothing until its request ends. The reuse distance is counted
    in sequences, the share of slots that were used since, or in tokens of the cache, whichever is more.
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
        """The idle sequence that shares most with this prompt, and the one that would lose its slot to it."""
        held = self._best(chain)
        shared = chain.common_bytes(held.chain) if held is not None else 0
        lost = self._displaced_by(chain, held, shared)
        segments: tuple[Segment, ...] = ()
        if held is not None:
            segments = (Segment(shared, min(len(EDGES) - 1, bin_of(self._distance(held)))),)
        if lost is None:
            return Match(chain.total, shared, segments)
        return Match(chain.total, shared, segments, displaced=lost.chain, displaced_tokens=lost.tokens)

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

    def _distance(self, held: _Sequence) -> float:
        """What was used since, in caches."""
        later = self._sequences[self._sequences.index(held) + 1 :]
        tokens = sum(each.tokens for each in later)
        distance = max(len(later) / self._limit, tokens / self._capacity)
        return distance if tokens + held.tokens <= self._capacity else max(distance, 1.0)

    def _displaced_by(self, chain: Chain, held: _Sequence | None, shared: int) -> _Sequence | None:
        """Whose slot this prompt would take, if that sequence is not its own beginning; by the server's own rule."""
        in_slots = self._sequences[-self._limit :]
        if held is not None and held in in_slots and shared > _SIMILAR * chain.total:
            return None if shared >= _CONTINUES * held.chain.indexed else held
        if len(in_slots) < self._limit:
            return None
        return next((each for each in in_slots if not each.busy), None)

    def _take(self, new: _Sequence) -> None:
        held = self._best(new.chain) or self._same(new.chain)
        if held is not None:
            shared = held.chain.common_bytes(new.chain)
            lost = self._displaced_by(new.chain, held, shared)
            if shared >= _CONTINUES * held.chain.indexed:
                self._sequences.remove(held)
            elif lost is held:  # it lost its slot to a prompt that begins alike, however lately it was used
                self._sequences.remove(held)
                self._sequences.insert(max(0, len(self._sequences) + 1 - self._limit), held)
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
        """Forget idle sequences, oldest first."""
        most = _REMEMBERED * self._limit
        for held in list(self._sequences[: max(0, len(self._sequences) - most)]):
            if not held.busy:
                self._sequences.remove(held)
