"""Paged KV cache with prefix caching: a pool of blocks, reference counts, and an LRU list of the free ones.

A free block keeps its content until it is taken again, so "free" and "cached" overlap, as in vLLM.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

__all__ = ["PagedKvCache"]


class PagedKvCache:
    """`num_blocks` blocks; content is known by its chain key."""

    __slots__ = ("_free", "_keys", "_refs", "_where", "num_blocks", "prefix_caching", "version")

    def __init__(self, num_blocks: int, *, prefix_caching: bool = True) -> None:
        """An empty pool."""
        self.num_blocks = num_blocks
        self.prefix_caching = prefix_caching
        self.version = 0
        """Grows whenever an allocation that failed before might succeed now."""
        self._refs = [0] * num_blocks
        self._keys: list[int | None] = [None] * num_blocks
        self._where: dict[int, int] = {}
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_blocks))

    @property
    def free_blocks(self) -> int:
        """Blocks that no sequence holds, cached ones included."""
        return len(self._free)

    @property
    def used_blocks(self) -> int:
        """Blocks that at least one sequence holds."""
        return self.num_blocks - len(self._free)

    @property
    def cached_blocks(self) -> int:
        """Blocks with known content, held or free."""
        return len(self._where)

    def references(self) -> int:
        """Sum of all reference counts; 0 when no sequence is left."""
        return sum(self._refs)

    def match(self, keys: Iterable[int]) -> list[int]:
        """Blocks that hold the longest cached prefix of `keys`; takes no reference."""
        found = []
        for key in keys:
            block = self._where.get(key)
            if block is None:
                break
            found.append(block)
        return found

    def available(self, matched: Sequence[int]) -> int:
        """Blocks that could be taken beside `matched`, whose own free ones will be held."""
        return len(self._free) - sum(not self._refs[block] for block in matched)

    def hold(self, blocks: Iterable[int]) -> None:
        """One more reference to each of `blocks`."""
        for block in blocks:
            if not self._refs[block]:
                del self._free[block]
            self._refs[block] += 1

    def take(self, count: int) -> list[int]:
        """`count` blocks, least recently used first, their content forgotten; ValueError when fewer are free."""
        if count > len(self._free):
            raise ValueError(f"{count} blocks wanted, {len(self._free)} free")
        taken = []
        for _ in range(count):
            block, _none = self._free.popitem(last=False)
            key = self._keys[block]
            if key is not None:
                del self._where[key]
                self._keys[block] = None
            self._refs[block] = 1
            taken.append(block)
        return taken

    def register(self, block: int, key: int) -> None:
        """The content of a held, full block is now `key`; the first block with a key serves the hits."""
        if self.prefix_caching and key not in self._where and self._keys[block] is None:
            self._where[key] = block
            self._keys[block] = key
            self.version += 1

    def release(self, blocks: Sequence[int]) -> None:
        """One reference less to each of `blocks`, the tail first, so that it is evicted before the head."""
        for block in reversed(blocks):
            self._refs[block] -= 1
            if not self._refs[block]:
                self._free[block] = None
        if blocks:
            self.version += 1
