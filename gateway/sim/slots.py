"""Slots over one pool of cells, as llama.cpp's server schedules with a unified KV cache.

A request takes the idle slot whose last text shares the longest prefix with it, if that is more than a tenth of the
prompt, else the slot idle for longest; prefixes are never shared between slots. When the cells run out, idle slots
forget their text; when that is not enough, every request in a slot fails, as "Context size has been exceeded." does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from gateway.sim.batch import Batch
from gateway.sim.profile import EngineProfile
from gateway.sim.sequence import Sequence

__all__ = ["SIMILARITY", "SlotScheduler"]

SIMILARITY = 0.10
"""llama.cpp's default of --slot-prompt-similarity."""


class _Slot:
    __slots__ = ("keys", "sequence", "tokens", "used_at")

    def __init__(self) -> None:
        self.sequence: Sequence | None = None
        self.keys: list[int] = []
        self.tokens = 0
        self.used_at = 0

    @property
    def cells(self) -> int:
        return self.tokens if self.sequence is None else self.sequence.computed


class SlotScheduler:
    """`max_num_seqs` slots; prefixes are compared in steps of `block_size` tokens."""

    __slots__ = ("_cells", "_profile", "_slots", "_turn", "_waiting")

    def __init__(self, profile: EngineProfile) -> None:
        """All slots idle and empty; the pool has as many cells as the profile's blocks hold tokens."""
        self._profile = profile
        self._cells = profile.num_blocks * profile.block_size
        self._slots = [_Slot() for _ in range(profile.max_num_seqs)]
        self._waiting: deque[Sequence] = deque()
        self._turn = 0

    @property
    def running(self) -> int:
        """Slots in use."""
        return sum(slot.sequence is not None for slot in self._slots)

    @property
    def waiting(self) -> int:
        """Requests without a slot."""
        return len(self._waiting)

    @property
    def kv_usage(self) -> float:
        """Share of the cells that requests in slots hold."""
        return sum(slot.cells for slot in self._slots if slot.sequence is not None) / self._cells

    def __iter__(self) -> Iterator[Sequence]:
        """Requests in slots, then the queue."""
        yield from (slot.sequence for slot in self._slots if slot.sequence is not None)
        yield from self._waiting

    def add(self, sequence: Sequence) -> None:
        """Queue a request behind the others."""
        self._waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Drop a request; its slot keeps the text for the next one. ValueError when it is not here."""
        for slot in self._slots:
            if slot.sequence is sequence:
                size = self._profile.block_size
                slot.keys = list(sequence.keys_up_to(sequence.computed // size, size))
                slot.tokens = sequence.computed
                slot.sequence = None
                self._turn += 1
                slot.used_at = self._turn
                return
        self._waiting.remove(sequence)

    def schedule(self, now: float, max_repeat: int) -> Batch:
        """Fill idle slots, then one token for every decoding slot and prompts up to the token budget."""
        while self._waiting and self.running < len(self._slots):
            self._assign(self._waiting.popleft(), now)
        batch = Batch()
        busy = [slot.sequence for slot in self._slots if slot.sequence is not None]
        batch.decodes = [sequence for sequence in busy if sequence.decoding]
        budget = self._profile.max_batched_tokens - len(batch.decodes)
        for sequence in busy:
            if budget > 0 and not sequence.decoding:
                tokens = min(budget, sequence.total - sequence.computed)
                batch.chunks.append((sequence, tokens))
                budget -= tokens
        if not batch.chunks and max_repeat > 1:
            batch.repeat = min([max_repeat, *(s.request.output_tokens - s.generated for s in batch.decodes)])
        wanted = len(batch.decodes) * batch.repeat + sum(tokens for _, tokens in batch.chunks)
        if not self._make_room(wanted):
            return Batch(failed=busy) if batch.repeat == 1 else self.schedule(now, 1)
        return batch

    def computed(self, sequence: Sequence) -> None:
        """Nothing to do: a slot's cells follow its request."""

    def _assign(self, sequence: Sequence, now: float) -> None:
        idle = [slot for slot in self._slots if slot.sequence is None]
        size = self._profile.block_size
        keys = sequence.keys_up_to(sequence.total // size, size)
        shared, slot = max(
            ((_common(slot.keys, keys) * size, slot) for slot in idle), key=lambda found: (found[0], -found[1].used_at)
        )
        if shared <= SIMILARITY * sequence.total:
            slot = min(idle, key=lambda each: each.used_at)
            shared = _common(slot.keys, keys) * size
        sequence.computed = sequence.cached = min(shared, sequence.total - 1)
        sequence.admitted_at = now
        slot.sequence = sequence

    def _make_room(self, wanted: int) -> bool:
        used = sum(slot.cells for slot in self._slots)
        for slot in sorted(self._slots, key=lambda each: each.used_at):
            if used + wanted <= self._cells:
                return True
            if slot.sequence is None:
                used -= slot.tokens
                slot.keys, slot.tokens = [], 0
        return used + wanted <= self._cells


def _common(one: list[int], two: list[int]) -> int:
    count = 0
    for left, right in zip(one, two, strict=False):
        if left != right:
            break
        count += 1
    return count
