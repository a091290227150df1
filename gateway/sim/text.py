"""Content of a request, as far as a prefix cache sees it: a key for every block, chained on the block before.

Two texts share the keys of a block exactly where everything up to the end of that block is the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import xxhash

__all__ = ["BYTES_PER_TOKEN", "ByteText", "SegmentText", "Text"]

BYTES_PER_TOKEN = 4
"""One emulated token; English prose has about 4.1 bytes a token in current vocabularies."""


class Text(Protocol):
    """A prompt and the answer that will follow it."""

    def key(self, start: int, stop: int, parent: int) -> int:
        """Key of the tokens from `start` to `stop` after a block with the key `parent`."""
        ...


@dataclass(frozen=True, slots=True)
class ByteText:
    """Real text: a token is four bytes."""

    data: bytes

    def key(self, start: int, stop: int, parent: int) -> int:
        """64-bit hash of the bytes, seeded with the parent's."""
        return xxhash.xxh3_64_intdigest(self.data[start * BYTES_PER_TOKEN : stop * BYTES_PER_TOKEN], parent)


class SegmentText:
    """Text of a trace: segments of (id, tokens), where equal ids stand for equal text."""

    __slots__ = ("_ends", "_ids", "segments")

    def __init__(self, segments: Sequence[tuple[int, int]]) -> None:
        """Segments in order; the last ones are the answer."""
        self.segments = tuple(segments)
        self._ids = [ident for ident, _ in segments]
        self._ends = list(accumulate(tokens for _, tokens in segments))

    def key(self, start: int, stop: int, parent: int) -> int:
        """Hash of the pieces that the range touches; of integers only, so the same in every process."""
        pieces = [parent]
        at = bisect_right(self._ends, start)
        while start < stop and at < len(self._ends):
            end = min(stop, self._ends[at])
            begin = self._ends[at - 1] if at else 0
            pieces += (self._ids[at], start - begin, end - begin)
            start = end
            at += 1
        if start < stop:
            pieces.append(stop - start)
        return hash(tuple(pieces))
