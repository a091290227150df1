"""From a model and how it is served to what one request takes of the engine's KV pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gateway.core.kv.block_pool import block_pool
from gateway.core.kv.cell_pool import cell_pool
from gateway.core.kv.deployment import Deployment
from gateway.core.kv.model import ModelShape
from gateway.core.kv.steps import Step
from gateway.core.kv.token_pool import token_pool

__all__ = ["PoolPlan", "plan_pool"]


class PoolPlan(Protocol):
    """The KV pool of one model on one engine. Bytes are those of the fullest rank unless they say otherwise."""

    @property
    def block(self) -> int:
        """Tokens per block, which is also the unit of prefix hits."""
        ...

    @property
    def block_bytes(self) -> int:
        """Bytes of one pool block; 0 for a model that keeps nothing that grows."""
        ...

    @property
    def allocated_bytes(self) -> int:
        """Bytes that the engine takes at start for the deployment's context and slots; 0 if it takes what is left."""
        ...

    @property
    def steps(self) -> tuple[Step, ...]:
        """The arithmetic line by line."""
        ...

    def request_blocks(self, tokens: int) -> int:
        """Blocks that a settled request of `tokens` tokens holds."""
        ...

    def admission_blocks(self, tokens: int) -> int:
        """Blocks that must be free before the engine admits it, tokens in flight counted."""
        ...

    def request_bytes(self, tokens: int) -> int:
        """Bytes that a settled request of `tokens` tokens takes of the pool."""
        ...

    def total_bytes(self, tokens: int) -> int:
        """The same summed over all ranks, copies included."""
        ...

    def admission_bytes(self, tokens: int) -> int:
        """Bytes that must be free before the engine admits it."""
        ...

    def stored_bytes(self, tokens: int) -> int:
        """Bytes that it fills of what it takes."""
        ...

    def blocks_in(self, pool_bytes: int) -> int:
        """Blocks of a pool of `pool_bytes` bytes."""
        ...

    def capacity_tokens(self, pool_bytes: int) -> int:
        """Tokens of a pool of `pool_bytes` bytes as the engine logs them."""
        ...

    def concurrency(self, pool_bytes: int) -> float:
        """Requests of full length that fit, as the engine logs it."""
        ...

    def sequences(self, pool_bytes: int, tokens: int) -> int:
        """Requests of `tokens` tokens that a pool of `pool_bytes` bytes holds at once.

        0 as well for a model that keeps nothing (`block_bytes` is 0), of which any number fits.
        """
        ...

    def steps_in(self, pool_bytes: int) -> tuple[Step, ...]:
        """What a pool of `pool_bytes` bytes holds, line by line."""
        ...


_POOLS: dict[str, Callable[[ModelShape, Deployment], PoolPlan]] = {
    "llama.cpp": cell_pool,
    "ollama": cell_pool,
    "sglang": token_pool,
}
"""Engines that don't page as vLLM does. Ollama's runner is llama.cpp's cache."""


def plan_pool(model: ModelShape, deployment: Deployment) -> PoolPlan:
    """How `deployment.engine` pages this model; engines that aren't known are taken to page as vLLM does.

    Raises ValueError if the model's layout is not known.
    """
    return _POOLS.get(deployment.engine, block_pool)(model, deployment)
