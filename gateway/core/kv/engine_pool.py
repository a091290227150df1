"""What an engine tells of its own KV pool beyond a number of tokens: enough to price it without the model's layout."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOTHING_TOLD", "EnginePool"]


@dataclass(frozen=True, slots=True)
class EnginePool:
    """Figures as the engine has them; None where it doesn't tell.

    `blocks`: of the pool, over all data-parallel engines. `concurrency`: requests of full window that it says they
    hold; blocks over this is what one such request is charged, states and windows included. `bytes`: of the pool on one
    device. `dtype`: number format of the cache, by the engine's name for it. `memory_share`: part of a device's memory
    that it was told to use. `prefix_caching`: whether finished prefixes stay cached. `slot_tokens`: tokens that every
    slot has for itself. `groups`: data-parallel engines.
    """

    blocks: int | None = None
    concurrency: float | None = None
    bytes: int | None = None
    dtype: str | None = None
    memory_share: float | None = None
    prefix_caching: bool | None = None
    slot_tokens: int | None = None
    groups: int = 1

    @property
    def full_request_blocks(self) -> int | None:
        """Blocks that the engine charges a request as long as its window; None where that can't be told."""
        if not self.blocks or not self.concurrency or self.concurrency <= 0:
            return None
        return max(1, round(self.blocks / self.concurrency))


NOTHING_TOLD = EnginePool()
"""An engine that says nothing of its pool, or was not asked."""
