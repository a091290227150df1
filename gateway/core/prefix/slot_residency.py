"""A cache of whole sequences, one a slot, not shared between requests (llama.cpp's server).

Left to itself the server takes the slot with the longest common prefix, if that is more than a tenth of the prompt,
else an empty one, else the one used longest ago: agents that share a system prompt take each other's slots. So where it
can be told which slot to use, that is chosen here. A host cache (`--cache-ram`) holds sequences that lost their slot,
but doesn't tell how many: so more are remembered than there are slots, and what comes of those is for PrefixTrust to
learn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.core.prefix.chain import Chain
from gateway.core.prefix.reuse import EDGES, Match, Segment, bin_of

__all__ = ["SlotResidency", "Worth"]

Worth = Callable[[Chain], float]
"""The probability that somebody goes on from this prompt."""

_CONTINUES = 0.9
"""A prompt that keeps at least this share of a sequence goes on from it."""
_SIMILAR = 0.1
"""Part of a prompt that a slot must hold to be chosen for it (llama-server's `--slot-prompt-similarity`)."""
_REMEMBERED = 4
"""Sequences that are remembered, in slots."""
_LIVE = 0.25
"""A conversation that comes back with less than this probability may lose its slot though an empty one is left."""


@dataclass(slots=True, eq=False)
class _Sequence:
    chain: Chain
    tokens: int
    slot: int | None = None
    """None: it lost its slot."""
    busy: bool = False
    confirmed: bool = True


class SlotResidency:
    """Remembers the last prompts, newest last: those in the `sequences` slots, and some that lost theirs.

    `chosen`: the server is told which slot to take. A busy slot serves nobody else, so its prefix matches nothing until
    its request ends. Unless slots are chosen, the reuse distance is counted in sequences, the share of slots that were
    used since; in any case in tokens of the cache.
    """

    def __init__(
        self, capacity_tokens: int, sequences: int, *, chosen: bool = False, worth: Worth = lambda _: 1.0
    ) -> None:
        self._sequences: list[_Sequence] = []
        self._limit = max(1, sequences)
        self._capacity = max(1, capacity_tokens)
        self._chosen = chosen
        self._worth = worth

    @property
    def entries(self) -> int:
        """Index entries in use."""
        return sum(len(held.chain.hashes) for held in self._sequences)

    def resize(self, capacity_tokens: int, entries: int) -> None:  # noqa: ARG002 - bounded by sequences
        """Set the cache's size in tokens."""
        self._capacity = max(1, capacity_tokens)
        self._forget_oldest()

    def match(self, chain: Chain) -> Match:
        """The idle sequence that shares most with this prompt, and the one that would lose its slot to it."""
        shared = self._shared(chain)
        held = max(reversed(shared), key=shared.__getitem__, default=None)
        most = shared[held] if held is not None else 0
        _, lost = self._place(chain, shared)
        segments: tuple[Segment, ...] = ()
        if held is not None and most:
            segments = (Segment(most, min(len(EDGES) - 1, bin_of(self._distance(held)))),)
        if lost is None:
            return Match(chain.total, most, segments)
        kept = shared.get(lost, 0) / lost.chain.total if not self._chosen and lost.chain.total else 0.0
        tokens = int(lost.tokens * (1.0 - kept))
        return Match(chain.total, most, segments, displaced=lost.chain, displaced_tokens=tokens)

    def slot_of(self, chain: Chain) -> int | None:
        """The slot that the running request with this very chain was given."""
        held = self._busy(chain)
        return held.slot if held is not None else None

    def insert(self, chain: Chain, tokens: int, cached: int | None = None) -> None:  # noqa: ARG002 - no clock here
        """Hold this prompt in the slot whose sequence it continues, else in the one that `begin` would take."""
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
        """What was used since, in caches; 1 at least for what has no slot any more or no room."""
        later = self._sequences[self._sequences.index(held) + 1 :]
        tokens = sum(each.tokens for each in later)
        distance = tokens / self._capacity
        if held.slot is None or tokens + held.tokens > self._capacity:
            return max(distance, 1.0, len(later) / self._limit)
        return min(distance, 0.99) if self._chosen else max(min(distance, 0.99), min(len(later) / self._limit, 0.99))

    def _take(self, new: _Sequence) -> None:
        shared = self._shared(new.chain)
        new.slot, lost = self._place(new.chain, shared)
        for held in [each for each in self._sequences if each.slot == new.slot and not each.busy]:
            held.slot = None
        for held, common in shared.items():
            if held is not lost and (_goes_on(common, held) or _same(held.chain, new.chain)):
                self._sequences.remove(held)  # the new one is all of it, and more
                break
        self._sequences.append(new)
        self._forget_oldest()

    def _place(self, chain: Chain, shared: dict[_Sequence, int]) -> tuple[int | None, _Sequence | None]:
        """The slot for this prompt, and whose it is now, if that one is not its own beginning."""
        idle = [held for held in shared if held.slot is not None]
        own = max(
            (held for held in idle if _goes_on(shared[held], held) or _same(held.chain, chain)),
            key=lambda held: shared[held],
            default=None,
        )
        if own is not None:
            return own.slot, None
        used = {held.slot for held in self._sequences if held.slot is not None}
        empty = next((slot for slot in range(self._limit) if slot not in used), None)
        victim = self._cheapest(idle, shared) if self._chosen else self._similar(chain, idle, shared)
        if victim is not None and (empty is None or not self._chosen or self._worth(victim.chain) < _LIVE):
            spared = empty is not None and shared[victim] == 0
            if not spared:
                return victim.slot, victim
        if empty is not None:
            return empty, None
        oldest = next(iter(idle), None)
        return (oldest.slot, oldest) if oldest is not None else (None, None)

    def _cheapest(self, idle: list[_Sequence], shared: dict[_Sequence, int]) -> _Sequence | None:
        """Whose loss costs fewest tokens: its own, if it comes back, less those that this prompt need not read."""

        def tokens(held: _Sequence) -> float:
            density = held.tokens / held.chain.total if held.chain.total else 0.25
            return self._worth(held.chain) * held.tokens - shared[held] * density

        return min(idle, key=tokens, default=None)

    def _similar(self, chain: Chain, idle: list[_Sequence], shared: dict[_Sequence, int]) -> _Sequence | None:
        best = max(idle, key=lambda held: shared[held], default=None)
        return best if best is not None and shared[best] > _SIMILAR * chain.total else None

    def _shared(self, chain: Chain) -> dict[_Sequence, int]:
        """Bytes that this prompt shares with each idle sequence, oldest first."""
        first = chain.hashes[0] if chain.hashes else None
        return {
            held: chain.common_bytes(held.chain)
            if first is None or not held.chain.hashes or held.chain.hashes[0] == first
            else 0
            for held in self._sequences
            if not held.busy
        }

    def _busy(self, chain: Chain) -> _Sequence | None:
        for held in self._sequences:
            if held.busy and held.chain is chain:
                return held
        return None

    def _forget_oldest(self) -> None:
        """Forget sequences without a slot, oldest first."""
        over = len(self._sequences) - _REMEMBERED * self._limit
        for held in list(self._sequences):
            if over <= 0:
                return
            if held.slot is None and not held.busy:
                self._sequences.remove(held)
                over -= 1


def _goes_on(shared: int, held: _Sequence) -> bool:
    return shared > 0 and shared >= _CONTINUES * held.chain.indexed


def _same(one: Chain, other: Chain) -> bool:
    """The same prompt again, where it is too short to have blocks."""
    return one.head == other.head and one.total == other.total
