"""llama.cpp's KV cache: cells (one token each) and states, all allocated at start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.core.kv.deployment import Deployment
from gateway.core.kv.layer_spec import Kind, LayerSpec, layer_specs
from gateway.core.kv.model import ModelShape
from gateway.core.kv.recurrent import GatedDeltaNet, Kda, Mamba2
from gateway.core.kv.sequence_cells import cache_cells, window_cells
from gateway.core.kv.steps import Step

__all__ = ["CellPool", "cell_pool"]

_CONV_BYTES = 4
"""llama.cpp keeps the tail of a convolution in fp32, as it does the state."""


@dataclass(frozen=True, slots=True)
class CellPool:
    """Cells of `block_bytes` bytes in the growing layers; windows and states are `fixed_bytes`, whatever is asked.

    `window_bytes` is one more token in layers with a window of `window` tokens; `state_bytes` one slot's states.
    `slot_cells`: tokens that one request can hold. `allocated_bytes`: what the engine takes at start and logs as the
    size of its KV buffers.
    """

    block: int
    block_bytes: int
    window_bytes: int
    window: int
    state_bytes: int
    fixed_bytes: int
    cells: int
    slot_cells: int
    slots: int
    allocated_bytes: int
    steps: tuple[Step, ...] = ()

    def request_blocks(self, tokens: int) -> int:
        """Cells that a request of `tokens` tokens fills."""
        return tokens

    def admission_blocks(self, tokens: int) -> int:
        """The same: cells are taken as tokens are computed, windows are allocated at start."""
        return tokens

    def request_bytes(self, tokens: int) -> int:
        """Bytes that a request of `tokens` tokens fills: cells, windows and its slot's states."""
        return tokens * self.block_bytes + min(tokens, self.window) * self.window_bytes + self.state_bytes

    def total_bytes(self, tokens: int) -> int:
        """The same: llama.cpp splits layers or rows over devices and copies nothing."""
        return self.request_bytes(tokens)

    def admission_bytes(self, tokens: int) -> int:
        """The same as `request_bytes`: nothing more is reserved for a prefill."""
        return self.request_bytes(tokens)

    def stored_bytes(self, tokens: int) -> int:
        """The same as `request_bytes`."""
        return self.request_bytes(tokens)

    def blocks_in(self, pool_bytes: int) -> int:
        """Cells that memory of `pool_bytes` bytes holds beside windows and states."""
        return max(0, pool_bytes - self.fixed_bytes) // self.block_bytes if self.block_bytes else 0

    def capacity_tokens(self, pool_bytes: int) -> int:
        """Tokens of all slots together; the engine itself allocates exactly `cells`."""
        return self.blocks_in(pool_bytes)

    def sequences(self, pool_bytes: int, tokens: int) -> int:
        """Requests of `tokens` tokens at once: at most one a slot, each within its slot's cells."""
        if pool_bytes < self.fixed_bytes or tokens > self.slot_cells:
            return 0
        if not self.block_bytes or not tokens:
            return self.slots
        return min(self.slots, min(self.cells, self.blocks_in(pool_bytes)) // tokens)


def cell_pool(model: ModelShape, deployment: Deployment) -> CellPool:
    """The cache that llama.cpp makes for a model. Raises ValueError if the model's layout is not known."""
    whole = replace(deployment, tensor_parallel=1, pipeline_parallel=1)
    specs = layer_specs(_conv_in_fp32(model), whole)
    context = deployment.context or model.max_context
    cells = cache_cells(context, deployment.slots, unified=deployment.unified)
    growing = _per_cell(specs, Kind.GROWING)
    windowed = _per_cell(specs, Kind.SLIDING) + _per_cell(specs, Kind.CHUNKED)
    window = max((spec.window for spec in specs), default=0)
    state = sum(spec.layers * spec.state_bytes for spec in specs)
    fixed = state * deployment.slots
    if window:
        fixed += math.ceil(windowed * window_cells(cells, window, deployment.slots, deployment.micro_batch))
    return CellPool(
        block=1,
        block_bytes=math.ceil(growing),
        window_bytes=math.ceil(windowed),
        window=window,
        state_bytes=state,
        fixed_bytes=fixed,
        cells=cells,
        slot_cells=cells if deployment.unified else cells // deployment.slots,
        slots=deployment.slots,
        allocated_bytes=math.ceil(growing * cells) + fixed,
    )


def _per_cell(specs: Sequence[LayerSpec], kind: Kind) -> float:
    return sum(spec.layers * spec.row_bytes / spec.tokens_per_row for spec in specs if spec.kind is kind)


def _conv_in_fp32(model: ModelShape) -> ModelShape:
    recurrent = (GatedDeltaNet, Mamba2, Kda)
    layers = tuple(
        replace(layers, conv_element_bytes=_CONV_BYTES) if isinstance(layers, recurrent) else layers
        for layers in model.layers
    )
    return replace(model, layers=layers)
