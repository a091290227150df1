"""vLLM's KV pool: blocks of one size that every group of layers draws from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.core.kv.block_steps import block_steps
from gateway.core.kv.deployment import Deployment
from gateway.core.kv.layer_spec import Kind
from gateway.core.kv.layer_specs import layer_specs
from gateway.core.kv.model import ModelShape
from gateway.core.kv.page_group import PageGroup
from gateway.core.kv.steps import Step
from gateway.core.kv.vllm_groups import vllm_groups

__all__ = ["BlockPool", "block_pool"]

_UNBOUNDED = 1 << 62


@dataclass(frozen=True, slots=True)
class BlockPool:
    """Blocks of `block_bytes` bytes on the fullest rank, `total_block_bytes` over all ranks.

    `block`: tokens of a block of the growing layers, the unit of prefix hits. `in_flight`: tokens scheduled but not
    settled. `context`: tokens of the longest request. `state_blocks`, `settled` (groups, tokens a block, most blocks)
    and `reserved` (groups, tokens a block, most tokens, blocks on top) are the groups made ready for counting.
    `allocated_bytes`: 0, the engine takes whatever memory is left.
    """

    groups: tuple[PageGroup, ...]
    block: int
    block_bytes: int
    total_block_bytes: int
    in_flight: int
    context: int
    state_blocks: int
    settled: tuple[tuple[int, int, int], ...]
    reserved: tuple[tuple[int, int, int, int], ...]
    steps: tuple[Step, ...] = ()
    allocated_bytes: int = 0

    def request_blocks(self, tokens: int) -> int:
        """Blocks that a settled request of `tokens` tokens holds."""
        blocks = self.state_blocks
        for count, block, most in self.settled:
            covering = -(-tokens // block)
            blocks += count * min(covering, most)
        return blocks

    def admission_blocks(self, tokens: int) -> int:
        """Blocks that the engine wants free before it admits such a request, its prefill's unsettled tokens counted."""
        blocks = self.state_blocks
        for count, block, most, extra in self.reserved:
            blocks += count * (-(-min(tokens, most) // block) + extra)
        return blocks

    def request_bytes(self, tokens: int) -> int:
        """Bytes of the fullest rank's pool that a settled request of `tokens` tokens takes."""
        return self.request_blocks(tokens) * self.block_bytes

    def total_bytes(self, tokens: int) -> int:
        """The same over all ranks, copies included."""
        return self.request_blocks(tokens) * self.total_block_bytes

    def admission_bytes(self, tokens: int) -> int:
        """Bytes of the fullest rank's pool that must be free before the engine admits the request."""
        return self.admission_blocks(tokens) * self.block_bytes

    def stored_bytes(self, tokens: int) -> int:
        """Bytes that a settled request fills of its blocks; less than it takes where groups have unlike pages."""
        return sum(group.held(tokens) * group.page_bytes for group in self.groups)

    def blocks_in(self, pool_bytes: int) -> int:
        """Blocks of a pool of `pool_bytes` bytes on the fullest rank."""
        return pool_bytes // self.block_bytes if self.block_bytes else 0

    def concurrency(self, pool_bytes: int) -> float:
        """Requests of full length that fit, as the engine logs it; 0.0 for a model that keeps nothing."""
        need = self.admission_blocks(self.context)
        return self.blocks_in(pool_bytes) / need if need else 0.0

    def capacity_tokens(self, pool_bytes: int) -> int:
        """The figure logged as "GPU KV cache size": requests of full length that fit, times that length.

        It changes with the context, so pool bytes over this figure is not a price per token. vLLM before 0.22 logged
        blocks over groups times the smallest block instead.
        """
        return int(self.concurrency(pool_bytes) * self.context)

    def sequences(self, pool_bytes: int, tokens: int) -> int:
        """Requests of `tokens` tokens held at once; the last to be admitted still needs its in-flight reserve.

        One block is the engine's own (its null block).
        """
        blocks, first = self.blocks_in(pool_bytes) - 1, self.admission_blocks(tokens)
        if not first or blocks < first:
            return 0
        return 1 + (blocks - first) // max(self.request_blocks(tokens), 1)

    def steps_in(self, pool_bytes: int) -> tuple[Step, ...]:
        """How many requests a pool of `pool_bytes` bytes holds, line by line."""
        if not self.block_bytes:
            return ()
        blocks, need = self.blocks_in(pool_bytes), self.admission_blocks(self.context)
        return (
            Step("blocks in the pool", f"{pool_bytes} / {self.block_bytes}", blocks, "blocks"),
            Step("requests of full length", f"{blocks} / {need}", round(blocks / need, 2) if need else 0, "requests"),
            Step(
                "tokens as logged",
                f"{blocks} / {need} x {self.context}",
                self.capacity_tokens(pool_bytes),
                "tokens",
            ),
        )


def block_pool(model: ModelShape, deployment: Deployment) -> BlockPool:
    """The pool that vLLM makes for a model. Raises ValueError if the model's layout is not known."""
    specs = layer_specs(model, deployment, drafts_in_convolution=True)
    groups = vllm_groups(specs, deployment)
    widest = max((group.page_bytes for group in groups), default=0)
    unstaged = vllm_groups(specs, replace(deployment, pipeline_parallel=1))
    total = max((group.page_bytes for group in unstaged), default=0) * deployment.tensor_parallel
    growing = [group.block for group in groups if group.kind is Kind.GROWING]
    context = deployment.context or model.max_context
    paged = [group for group in groups if group.kind is not Kind.STATE]
    return BlockPool(
        groups=groups,
        block=max(growing, default=max((group.block for group in groups), default=1)),
        block_bytes=widest,
        total_block_bytes=total,
        in_flight=deployment.in_flight,
        context=context,
        state_blocks=sum(group.held(0) for group in groups if group.kind is Kind.STATE),
        settled=tuple((group.count, group.block, group.settled_cap or _UNBOUNDED) for group in paged),
        reserved=tuple(
            (group.count, group.block, group.reserved_tokens(deployment.in_flight) or _UNBOUNDED, group.straddle)
            for group in paged
        ),
        steps=block_steps(specs, groups, deployment, context),
    )
