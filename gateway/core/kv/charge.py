"""What a pool that is counted in tokens is charged for a sequence beside the tokens that the sequence holds.

vLLM's groups of layers draw blocks from one pool: beside the blocks that grow with its length, a sequence holds pages
of recurrent states, whatever its length, and the blocks of sliding windows, up to the window. A ledger that counted
lengths alone would admit far too many short requests to such a model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gateway.core.kv.pool_plan import PoolPlan

__all__ = ["NO_CHARGE", "Charge", "PoolUnit", "pool_unit"]

_FAR = 1 << 20
"""Blocks by which every window is full."""


class Charge(NamedTuple):
    """Tokens: `fixed` from the start, `rate` more for each token of the sequence, `most` in all."""

    fixed: int = 0
    rate: float = 0.0
    most: int = 0

    def beside(self, tokens: int) -> int:
        """Tokens charged for a sequence of `tokens` tokens beside those."""
        return min(self.fixed + math.ceil(self.rate * tokens), self.most)


NO_CHARGE = Charge()
"""Sequences cost what they are long: all layers grow alike, or what doesn't grow has memory of its own."""


class PoolUnit(NamedTuple):
    """How blocks become tokens: `per_block` tokens of a growing sequence for each block, and the charge beside them."""

    per_block: float
    charge: Charge

    def tokens(self, blocks: float) -> int:
        """Tokens that so many blocks count as."""
        return int(blocks * self.per_block)


def pool_unit(plan: PoolPlan) -> PoolUnit:
    """The unit in which sequences of this plan are charged exactly while they grow, and never too little.

    Groups hold blocks in proportion to the length up to a bound of their own, so their sum beside the growing ones is
    concave: its first block, its first steps and its bound enclose it from above.
    """
    block = plan.block
    far = plan.request_blocks(2 * _FAR * block) - plan.request_blocks(_FAR * block)
    growing = far / _FAR
    if growing <= 0.0:
        return PoolUnit(float(block), Charge(0, 0.0, 0))

    def beside(blocks: int) -> float:
        return plan.request_blocks(blocks * block) - growing * blocks

    per_block = block / growing
    most = max(beside(_FAR), 0.0) * per_block
    first = max(beside(1), 0.0) * per_block
    rate = max(beside(2) - beside(1), beside(3) - beside(2), 0.0) / growing
    return PoolUnit(per_block, Charge(math.ceil(first), rate, math.ceil(most)))
