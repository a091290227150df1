"""Continuous batching over paged KV memory, as vLLM schedules under its "fcfs" policy.

Each iteration: one token for every decoding sequence, then chunks of the prompts already admitted, then new prompts, in
order of arrival, while the token budget, `max_num_seqs` and the free blocks last. A prompt gets all its blocks at
admission; an answer grows block by block. When no block is left the newest sequence is preempted: its blocks go, and it
waits at the head of the queue to be computed again, answer so far included.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from gateway.sim.batch import Batch
from gateway.sim.kv_cache import PagedKvCache
from gateway.sim.profile import EngineProfile
from gateway.sim.sequence import Sequence

__all__ = ["PagedScheduler"]


class PagedScheduler:
    """Queue, running batch and block pool of one engine."""

    __slots__ = ("_blocked_at", "_profile", "_running", "_waiting", "cache")

    def __init__(self, profile: EngineProfile) -> None:
        """An idle scheduler with an empty cache."""
        self._profile = profile
        self._running: list[Sequence] = []
        self._waiting: deque[Sequence] = deque()
        self._blocked_at = -1
        self.cache = PagedKvCache(profile.num_blocks, prefix_caching=profile.prefix_caching)

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Sequences queued, preempted ones included."""
        return len(self._waiting)

    @property
    def kv_usage(self) -> float:
        """Share of the blocks that sequences hold; cached blocks that nobody holds count as free."""
        return self.cache.used_blocks / self.cache.num_blocks

    def __iter__(self) -> Iterator[Sequence]:
        """All sequences, running ones first."""
        yield from self._running
        yield from self._waiting

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence behind the others."""
        self._waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Drop a sequence and release its blocks; ValueError when it is not here."""
        if sequence in self._waiting:
            self._waiting.remove(sequence)
            self._blocked_at = -1
        else:
            self._running.remove(sequence)
            self._release(sequence)

    def schedule(self, now: float, max_repeat: int) -> Batch:
        """Choose what the next iteration computes."""
        batch = Batch()
        self._decode(batch)
        budget = self._profile.max_batched_tokens - len(batch.decodes)
        for sequence in self._running:
            if budget > 0 and not sequence.decoding:
                tokens = min(budget, sequence.total - sequence.computed)
                batch.chunks.append((sequence, tokens))
                budget -= tokens
        if not batch.preempted:
            self._admit(batch, budget, now)
        if max_repeat > 1 and not (batch.chunks or batch.preempted):
            batch.repeat = self._repeats(batch.decodes, max_repeat)
        return batch

    def computed(self, sequence: Sequence) -> None:
        """Make the blocks that became full known to the prefix cache."""
        full = sequence.computed // self._profile.block_size
        if full > sequence.registered:
            keys = sequence.keys_up_to(full, self._profile.block_size)
            for at in range(sequence.registered, full):
                self.cache.register(sequence.blocks[at], keys[at])
            sequence.registered = full

    def _decode(self, batch: Batch) -> None:
        at = 0
        while at < len(self._running):
            sequence = self._running[at]
            if sequence.decoding:
                if not self._grow(sequence, sequence.total, batch):
                    return
                batch.decodes.append(sequence)
            at += 1

    def _grow(self, sequence: Sequence, tokens: int, batch: Batch) -> bool:
        """Blocks for `tokens`, preempting the newest as long as there are none; False when that was `sequence`."""
        missing = -(-tokens // self._profile.block_size) - len(sequence.blocks)
        if missing <= 0:
            return True
        while self.cache.free_blocks < missing:
            newest = self._running.pop()
            self._release(newest)
            newest.preemptions += 1
            self._waiting.appendleft(newest)
            batch.preempted.append(newest)
            if newest is sequence:
                return False
        sequence.blocks += self.cache.take(missing)
        return True

    def _admit(self, batch: Batch, budget: int, now: float) -> None:
        size = self._profile.block_size
        while self._waiting and budget > 0 and len(self._running) < self._profile.max_num_seqs:
            if self._blocked_at == self.cache.version:
                return  # nothing was released or cached since the head of the queue did not fit
            head = self._waiting[0]
            # At least one token is computed, the one whose output is the next token.
            matched = self.cache.match(head.keys_up_to((head.total - 1) // size, size))
            needed = -(-head.total // size) - len(matched) + self._profile.state_blocks
            if self.cache.available(matched) < needed:
                self._blocked_at = self.cache.version
                return
            self._waiting.popleft()
            self._blocked_at = -1
            self._place(head, matched, needed)
            if head.admitted_at is None:
                head.admitted_at = now
                head.cached = head.computed
            self._running.append(head)
            tokens = min(budget, head.total - head.computed)
            budget -= tokens
            if head.decoding:
                batch.decodes.append(head)
            else:
                batch.chunks.append((head, tokens))

    def _place(self, sequence: Sequence, matched: list[int], needed: int) -> None:
        self.cache.hold(matched)
        taken = self.cache.take(needed)
        sequence.state_blocks = taken[: self._profile.state_blocks]
        sequence.blocks = matched + taken[self._profile.state_blocks :]
        sequence.registered = len(matched)
        sequence.computed = len(matched) * self._profile.block_size

    def _repeats(self, decodes: list[Sequence], limit: int) -> int:
        """Iterations until the first answer ends, at most `limit`; 1 when the free blocks do not last so long."""
        limit = min([limit, *(s.request.output_tokens - s.generated for s in decodes)])
        size = self._profile.block_size
        missing = [max(0, -(-(s.total + limit - 1) // size) - len(s.blocks)) for s in decodes]
        if limit <= 1 or sum(missing) > self.cache.free_blocks:
            return 1
        for sequence, count in zip(decodes, missing, strict=True):
            sequence.blocks += self.cache.take(count)
        return limit

    def _release(self, sequence: Sequence) -> None:
        self.cache.release(sequence.blocks)
        self.cache.release(sequence.state_blocks)
        sequence.blocks, sequence.state_blocks = [], []
        sequence.computed = sequence.registered = 0
