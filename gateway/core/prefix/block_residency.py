"""A paged cache whose blocks are shared between requests and evicted least recently used (vLLM, SGLang)."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.prefix.chain import Chain
from gateway.core.prefix.pins import Pins
from gateway.core.prefix.reuse import EDGES, FORGOTTEN, Match, Segment, bin_of

__all__ = ["BlockResidency"]

_NEVER = float("-inf")


@dataclass(slots=True)
class _InFlight:
    chain: Chain
    tokens: int
    confirmed: bool = False


class BlockResidency:
    """Remembers when each block was last used, on a clock of KV tokens that the cache took in.

    A prompt's blocks are touched together, so an ancestor is never older than its descendant: what is resident has no
    gaps, and its depth is found by bisection. Entries live in two generations, swapped as a whole: no sweep, no
    tombstones, and bounded whatever comes.
    """

    def __init__(self, capacity_tokens: int, entries: int) -> None:
        self._young: dict[int, float] = {}
        self._old: dict[int, float] = {}
        self._pending = Pins()
        self._running = Pins()
        self._in_flight: dict[int, _InFlight] = {}
        self._clock = 0.0
        self._born = 0.0  # the clock when the young generation began
        self._capacity = 1
        self._limit = 1
        self.resize(capacity_tokens, entries)

    @property
    def clock(self) -> float:
        """KV tokens that the cache took in so far."""
        return self._clock

    @property
    def entries(self) -> int:
        """Index entries in use."""
        return len(self._young) + len(self._old)

    def resize(self, capacity_tokens: int, entries: int) -> None:
        """Set the cache's size in tokens and the bound on index entries (half of them to a generation)."""
        self._capacity = max(1, capacity_tokens)
        self._limit = max(1, entries // 2)

    def match(self, chain: Chain) -> Match:
        """What is held of this prompt: pinned blocks, then touched ones by reuse distance."""
        pinned = self._running.depth(chain)
        pending = self._pending.depth(chain)
        depth = self._depth(chain, FORGOTTEN, pinned)
        segments = self._segments(chain, depth, pinned) if depth else ()
        boundary = self._boundary(chain, chain.ends[depth - 1] if depth else 0)
        if boundary is not None:
            segments = (*segments, boundary)
        if not segments:
            return Match(chain.total, pending=chain.ends[pending - 1] if pending else 0)
        return Match(
            total=chain.total,
            bytes=segments[-1].end,
            segments=segments,
            pinned=chain.ends[pinned - 1] if pinned else 0,
            pending=chain.ends[max(pending, depth) - 1] if pending else 0,
        )

    def insert(self, chain: Chain, tokens: int, cached: int | None = None) -> None:
        """Touch all blocks of the prompt; the clock moves by the tokens that weren't held."""
        if cached is None:
            depth = self._depth(chain, FORGOTTEN, 0)
            cached = int(tokens * chain.ends[depth - 1] / chain.total) if depth else 0
        self.advance(tokens - cached)
        if len(self._young) + len(chain.hashes) > self._limit and self._young:
            self._turn()
        self._young.update(dict.fromkeys(chain.hashes, self._clock))
        self._young.update((digest, self._clock) for digest, _ in chain.anchors)

    def begin(self, chain: Chain, tokens: int) -> None:
        """Pin the prompt's blocks as being computed."""
        if id(chain) not in self._in_flight:
            self._in_flight[id(chain)] = _InFlight(chain, tokens)
            self._pending.add(chain)

    def confirm(self, chain: Chain, cached: int | None = None) -> None:
        """Turn them into held ones, pinned by a running request."""
        flight = self._in_flight.get(id(chain))
        if flight is None or flight.confirmed:
            return
        flight.confirmed = True
        self._pending.drop(chain)
        self._running.add(chain)
        self.insert(chain, flight.tokens, cached)

    def end(self, chain: Chain) -> None:
        """Unpin; what was confirmed stays held until other tokens push it out."""
        flight = self._in_flight.pop(id(chain), None)
        if flight is not None:
            (self._running if flight.confirmed else self._pending).drop(chain)

    def advance(self, tokens: int) -> None:
        """Move the clock; a generation that is out of reach goes."""
        self._clock += max(0, tokens)
        if self._clock - self._born >= FORGOTTEN * self._capacity:
            self._turn()

    def clear(self) -> None:
        """Forget all touches and pins."""
        self._young, self._old = {}, {}
        self._pending.clear()
        self._running.clear()
        self._in_flight.clear()
        self._born = self._clock

    def _turn(self) -> None:
        self._old, self._young = self._young, {}
        self._born = self._clock

    def _depth(self, chain: Chain, distance: float, low: int) -> int:
        """How many leading blocks are nearer than `distance`, of which the first `low` are known to be."""
        oldest = self._clock - distance * self._capacity
        hashes, young, old = chain.hashes, self._young.get, self._old.get
        high = len(hashes)
        while low < high:
            middle = (low + high) // 2
            digest = hashes[middle]
            touch = young(digest)
            if touch is None:
                touch = old(digest, _NEVER)
            if touch > oldest:
                low = middle + 1
            else:
                high = middle
        return low

    def _segments(self, chain: Chain, depth: int, pinned: int) -> tuple[Segment, ...]:
        segments: list[Segment] = []
        if pinned:
            segments.append(Segment(chain.ends[pinned - 1], 0))
        done, last = pinned, self._bin(chain.hashes[depth - 1])
        while done < depth:
            bin_ = self._bin(chain.hashes[done])
            # Usually one prompt's touch covers all the rest, which its last block tells without bisecting.
            end = depth if bin_ == last else max(done + 1, self._depth(chain, EDGES[bin_], done))
            if segments and segments[-1].bin == bin_:
                segments.pop()
            segments.append(Segment(chain.ends[end - 1], bin_))
            done = end
        return tuple(segments)

    def _boundary(self, chain: Chain, start: int) -> Segment | None:
        """From the last held block to the end of an earlier prompt that this one goes on from: less than a block."""
        oldest = self._clock - FORGOTTEN * self._capacity
        for digest, end in reversed(chain.anchors):
            if end <= start:
                return None
            touch = self._young.get(digest)
            if touch is None:
                touch = self._old.get(digest, _NEVER)
            if touch > oldest:
                return Segment(end, self._bin(digest))
        return None

    def _bin(self, digest: int) -> int:
        touch = self._young.get(digest)
        if touch is None:
            touch = self._old.get(digest, _NEVER)
        return bin_of((self._clock - touch) / self._capacity)
