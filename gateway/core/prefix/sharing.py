"""KV blocks that running requests share on one backend, and who reserved them.

A prompt whose start is in use by a running request reserves only the rest of itself. When the one that reserved the
start ends first, the blocks stay as long as somebody uses them, and so must their reservation: they are orphaned.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from gateway.core.prefix.chain import Chain

__all__ = ["Sharing"]


@dataclass(slots=True)
class _Block:
    """`users` running requests hold it, `payers` of them reserved it; `orphaned`: tokens left by those who did.

    `upto`: tokens reserved from the start of the prompt to its end, by those who were the first to hold its parts.
    """

    upto: int
    users: int = 0
    payers: int = 0
    orphaned: int = 0


@dataclass(frozen=True, slots=True)
class _Use:
    """A request's blocks; the first `free` of them were not reserved by itself. `density`: tokens a byte."""

    chain: Chain
    free: int
    density: float


class Sharing:
    """The running requests of one cache. Tokens; the sum of all that `leave` returns is 0 when nobody is left."""

    __slots__ = ("_blocks", "_uses")

    def __init__(self) -> None:
        self._uses: dict[str, _Use] = {}
        self._blocks: dict[int, _Block] = {}

    def __len__(self) -> int:
        """Requests on the backend."""
        return len(self._uses)

    def enter(self, lease: str, chain: Chain, prompt: int, free: int) -> None:
        """A prompt of so many tokens was sent, of which the first `free` were not reserved."""
        density = prompt / chain.total if chain.total else 0.0
        # A block of which only a part was left out counts as left out: rather too much is reserved than too little.
        blocks = bisect_left(chain.ends, free / density) + 1 if free > 0 and density else 0
        self._uses[lease] = _Use(chain, blocks, density)
        upto, start = 0, 0
        for at, (digest, end) in enumerate(zip(chain.hashes, chain.ends, strict=True)):
            block = self._blocks.get(digest)
            if block is None:
                block = self._blocks[digest] = _Block(upto + int(end * density) - int(start * density))
            block.users += 1
            block.payers += at >= blocks
            upto, start = block.upto, end

    def held(self, chain: Chain, pinned: int) -> int:
        """Tokens that running requests have reserved for the first `pinned` bytes of a prompt, which they hold.

        Estimates differ: another prompt's may make more tokens of the same bytes than were reserved for them.
        """
        blocks = bisect_right(chain.ends, pinned)
        block = self._blocks.get(chain.hashes[blocks - 1]) if blocks else None
        return block.upto if block is not None else 0

    def leave(self, lease: str) -> int:
        """A request ended: tokens that stay reserved though it had reserved them; negative: that may be given back.

        Leaving twice changes nothing.
        """
        use = self._uses.pop(lease, None)
        if use is None:
            return 0
        stays, start = 0, 0
        for at, (digest, end) in enumerate(zip(use.chain.hashes, use.chain.ends, strict=True)):
            block = self._blocks[digest]
            block.users -= 1
            block.payers -= at >= use.free
            if not block.users:
                stays -= block.orphaned
                del self._blocks[digest]
            elif not block.payers and not block.orphaned:
                block.orphaned = int(end * use.density) - int(start * use.density) + 1
                stays += block.orphaned
            start = end
        return stays
