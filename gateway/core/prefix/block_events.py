"""What an engine itself says of the blocks in its cache, and which of them are whose prompt.

Events name blocks by hashes of tokens, which are not known here; prompts are known here by hashes of bytes. What links
them are counts: when a request of ours has ended, its engine told how many tokens its prompt has and how many it found
in the cache. Of the chains of blocks that grew meanwhile, the one that branched off there and reached that length is
its own, if it is the only one; where two could be, neither is taken. So a link may be missing, and then reuse distance
says what is resident, as without events. For a link to be wrong, others must have sent a prompt of the same two counts
at the same time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from gateway.core.prefix.chain import Chain

__all__ = ["AllCleared", "BlockMirror", "Event", "Lost", "Removed", "Stored"]

Hash = int | bytes
_LINKS = 4096
_WAITING = 64
_LATE = 2.0
"""Seconds that events may come after the answer which they belong to."""
_KNOWN = 1 << 21
_FRESH = 1 << 14
"""Blocks stored last, among which those of a request that has just ended are looked for."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Blocks of `size` tokens were filled, one after the other, the first of them after `parent`."""

    hashes: tuple[Hash, ...]
    parent: Hash | None
    size: int


@dataclass(frozen=True, slots=True)
class Removed:
    """Blocks were evicted."""

    hashes: tuple[Hash, ...]


@dataclass(frozen=True, slots=True)
class AllCleared:
    """The whole cache was emptied."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Events are missing, or another process publishes: nothing that was known holds."""


Event = Stored | Removed | AllCleared | Lost


@dataclass(slots=True)
class _Block:
    parent: Hash | None
    depth: int
    number: int
    """When it was stored: a running number of events."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A prompt of ours: `path` are its blocks of `size` tokens, from the first on."""

    chain: Chain
    tokens: int
    path: tuple[Hash, ...]
    size: int


@dataclass(frozen=True, slots=True)
class _Ended:
    chain: Chain
    tokens: int
    cached: int | None
    since: int
    at: float


class BlockMirror:
    """The blocks of one engine's cache, and the prompts of ours that they are known to hold. Seconds, monotonic."""

    def __init__(self) -> None:
        self._blocks: dict[Hash, _Block] = {}
        self._fresh: deque[Hash] = deque(maxlen=_FRESH)
        self._links: dict[int, _Link] = {}
        """By hash of each of our blocks, the prompt that had it last."""
        self._order: dict[int, _Link] = {}
        self._begun: dict[int, int] = {}
        self._waiting: list[_Ended] = []
        self._events = 0
        self._size = 0
        self.ambiguous = 0
        """Requests whose blocks could not be told from others'."""

    @property
    def links(self) -> int:
        """Prompts that are linked."""
        return len(self._order)

    def apply(self, events: list[Event], now: float) -> None:
        """Take in a batch."""
        for event in events:
            self._events += 1
            if isinstance(event, Stored):
                self._store(event)
            elif isinstance(event, Removed):
                for digest in event.hashes:
                    self._blocks.pop(digest, None)
            elif isinstance(event, AllCleared):
                self._blocks.clear()
            else:
                self.forget()
        if len(self._blocks) > _KNOWN:
            self.forget()
        self._link(now)

    def forget(self) -> None:
        """Nothing is known any more: events were lost, or the engine restarted."""
        self._blocks.clear()
        self._links.clear()
        self._order.clear()
        self._waiting.clear()

    def begin(self, chain: Chain) -> None:
        """A request with this prompt was sent."""
        self._begun[id(chain)] = self._events

    def end(self, chain: Chain, tokens: int | None, cached: int | None, now: float) -> None:
        """It is over; `tokens` of its prompt and how many of them were `cached`, as the engine counted."""
        since = self._begun.pop(id(chain), None)
        if since is None or not tokens:
            return
        self._waiting.append(_Ended(chain, tokens, cached, since, now))
        del self._waiting[:-_WAITING]
        self._link(now)

    def resident(self, chain: Chain) -> tuple[int, bool] | None:
        """Bytes of this prompt that are in the cache now, and whether what follows them is known to be gone.

        None where no link says anything.
        """
        low, high = 0, len(chain.hashes)
        while low < high:
            middle = (low + high) // 2
            if chain.hashes[middle] in self._links:
                low = middle + 1
            else:
                high = middle
        if not low:
            return None
        link = self._links[chain.hashes[low - 1]]
        live = 0
        for digest in link.path:
            if digest not in self._blocks:
                break
            live += 1
        shared = chain.common_bytes(link.chain)
        there = int(link.chain.total * min(1.0, live * link.size / link.tokens))
        if live == len(link.path) or there >= shared:
            return shared, False
        return there, True

    def _store(self, event: Stored) -> None:
        self._size = event.size
        parent = event.parent
        above = self._blocks.get(parent) if parent is not None else None
        if parent is not None and above is None:
            return  # what it goes on from was stored before anybody listened
        depth = above.depth if above is not None else 0
        for digest in event.hashes:
            depth += 1
            if digest not in self._blocks:
                self._blocks[digest] = _Block(parent, depth, self._events)
                self._fresh.append(digest)
            parent = digest

    def _link(self, now: float) -> None:
        """Look for the blocks of requests that have ended."""
        left = []
        for ended in self._waiting:
            paths = self._paths(ended) if self._size else []
            if len(paths) == 1:
                self._keep(_Link(ended.chain, ended.tokens, paths[0], self._size))
            elif now - ended.at < _LATE and not paths:
                left.append(ended)
            else:
                self.ambiguous += 1
        self._waiting = left

    def _paths(self, ended: _Ended) -> list[tuple[Hash, ...]]:
        """The chains of blocks that may be this prompt's."""
        whole = ended.tokens // self._size
        if not whole:
            return []
        held = None if ended.cached is None else ended.cached // self._size
        if held is not None and held >= whole:
            return []  # nothing of it was new: its link, if it has one, is an earlier prompt's
        found: dict[tuple[Hash, ...], None] = {}
        for digest in reversed(self._fresh):
            block = self._blocks.get(digest)
            if block is None:
                continue
            if block.number <= ended.since:
                break
            if block.depth == whole:
                path = self._path(digest)
                if path and self._fits(path, held, ended.since) and self._agrees(path, ended.chain):
                    found[path] = None
        return list(found)

    def _path(self, digest: Hash | None) -> tuple[Hash, ...]:
        path: list[Hash] = []
        while digest is not None:
            block = self._blocks.get(digest)
            if block is None:
                return ()
            path.append(digest)
            digest = block.parent
        return tuple(reversed(path))

    def _fits(self, path: tuple[Hash, ...], held: int | None, since: int) -> bool:
        """Whether it branched off where the engine found the end of what it had."""
        if held is None:
            return True
        fresh = self._blocks[path[held]].number > since
        return fresh and (held == 0 or self._blocks[path[held - 1]].number <= self._blocks[path[held]].number)

    def _agrees(self, path: tuple[Hash, ...], chain: Chain) -> bool:
        """Whether it begins with the blocks of a linked prompt, as far as ours begins like that one."""
        for digest in reversed(chain.hashes):
            link = self._links.get(digest)
            if link is not None:
                shared = int(link.tokens * 0.9 * chain.common_bytes(link.chain) / link.chain.total) // link.size
                return path[:shared] == link.path[:shared]
        return True

    def _keep(self, link: _Link) -> None:
        self._order[id(link.chain)] = link
        for digest in link.chain.hashes:
            self._links[digest] = link
        while len(self._order) > _LINKS:
            old = self._order.pop(next(iter(self._order)))
            for digest in old.chain.hashes:
                if self._links.get(digest) is old:
                    del self._links[digest]
