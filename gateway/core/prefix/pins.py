"""Which blocks are in use by requests in flight: reference counts by hash."""

from __future__ import annotations

from gateway.core.prefix.chain import Chain

__all__ = ["Pins"]


class Pins:
    """Reference counts of block hashes. Every chain pins all of its blocks, so pinned prefixes have no gaps."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, chain: Chain) -> None:
        """Pin every block of the chain once more."""
        counts = self._counts
        for digest in chain.hashes:
            counts[digest] = counts.get(digest, 0) + 1

    def drop(self, chain: Chain) -> None:
        """Undo one `add` of this chain."""
        counts = self._counts
        for digest in chain.hashes:
            left = counts[digest] - 1
            if left:
                counts[digest] = left
            else:
                del counts[digest]

    def depth(self, chain: Chain) -> int:
        """How many leading blocks of the chain are pinned by others or itself, by bisection."""
        counts, hashes = self._counts, chain.hashes
        if not counts:
            return 0
        low, high = 0, len(hashes)
        while low < high:
            middle = (low + high) // 2
            if hashes[middle] in counts:
                low = middle + 1
            else:
                high = middle
        return low

    def clear(self) -> None:
        """Unpin everything."""
        self._counts.clear()

    def __len__(self) -> int:
        return len(self._counts)
