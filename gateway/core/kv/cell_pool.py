"""llama.cpp's KV cache: cells (one token each), windows and states, all allocated at start."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gateway.core.kv.deployment import Deployment
from gateway.core.kv.layer_spec import Kind, LayerSpec
from gateway.core.kv.layer_specs import layer_specs
from gateway.core.kv.linear_state import Mamba1, ShortConvolution
from gateway.core.kv.model import ModelShape
from gateway.core.kv.recurrent import GatedDeltaNet, Kda, Mamba2
from gateway.core.kv.sequence_cells import cache_cells, window_cells
from gateway.core.kv.steps import Step, layer_steps

__all__ = ["CellPool", "cell_pool"]

_Convolving = GatedDeltaNet | Mamba2 | Kda | Mamba1 | ShortConvolution
_CONV_BYTES = 4
"""llama.cpp keeps the tail of a convolution in fp32, as it does the state."""


@dataclass(frozen=True, slots=True)
class CellPool:
    """Cells of `cell_bytes` bytes in the growing layers; windows and states are `fixed_bytes`, whatever is asked.

    `block`: 1, prefixes are found to the token. `window_bytes`: one more token in layers with a window, of which
    `window` are kept. `state_bytes`: one slot's states. `slot_cells`: tokens that one request can hold.
    `allocated_bytes`: what the engine takes at start and logs as the sizes of its KV and state buffers.
    """

    cell_bytes: float
    window_bytes: float
    window: int
    state_bytes: int
    fixed_bytes: int
    cells: int
    slot_cells: int
    slots: int
    allocated_bytes: int
    steps: tuple[Step, ...] = ()
    block: int = 1

    @property
    def block_bytes(self) -> int:
        """Bytes of one cell in the growing layers; 0 for a model that keeps nothing that grows."""
        return math.ceil(self.cell_bytes)

    def request_blocks(self, tokens: int) -> int:
        """Cells that a request of `tokens` tokens fills."""
        return tokens if self.cell_bytes else 0

    def admission_blocks(self, tokens: int) -> int:
        """The same: cells are taken as tokens are computed, windows are allocated at start."""
        return self.request_blocks(tokens)

    def request_bytes(self, tokens: int) -> int:
        """Bytes that a request of `tokens` tokens fills: cells, windows and its slot's states."""
        filled = tokens * self.cell_bytes + min(tokens, self.window) * self.window_bytes
        return math.ceil(filled) + self.state_bytes

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
        return int(max(0, pool_bytes - self.fixed_bytes) // self.cell_bytes) if self.cell_bytes else 0

    def capacity_tokens(self, pool_bytes: int) -> int:
        """Tokens of all slots together that the memory could hold; the engine itself allocates exactly `cells`."""
        return self.blocks_in(pool_bytes)

    def concurrency(self, pool_bytes: int) -> float:
        """Requests as long as a slot that fit."""
        return float(self.sequences(pool_bytes, self.slot_cells))

    def sequences(self, pool_bytes: int, tokens: int) -> int:
        """Requests of `tokens` tokens at once: at most one a slot, each within its slot's cells."""
        if pool_bytes < self.fixed_bytes or tokens > self.slot_cells:
            return 0
        if not self.cell_bytes or not tokens:
            return self.slots
        return min(self.slots, min(self.cells, self.blocks_in(pool_bytes)) // tokens)

    def steps_in(self, pool_bytes: int) -> tuple[Step, ...]:
        """How many cells memory of `pool_bytes` bytes holds, line by line."""
        if not self.cell_bytes:
            return ()
        cells = self.blocks_in(pool_bytes)
        return (Step("cells", f"({pool_bytes} - {self.fixed_bytes}) / {self.cell_bytes:.10g}", cells, "tokens"),)


def cell_pool(model: ModelShape, deployment: Deployment) -> CellPool:
    """The cache that llama.cpp makes for a model. Raises ValueError if the model's layout is not known."""
    whole = replace(deployment, tensor_parallel=1, pipeline_parallel=1)
    specs = layer_specs(_conv_in_fp32(model), whole)
    context, slots = deployment.context or model.max_context, deployment.slots
    cells = cache_cells(context, slots, unified=deployment.unified)
    slot_cells = cells if deployment.unified else cells // slots
    growing = _per_cell(specs, Kind.GROWING)
    windowed = _per_cell(specs, Kind.SLIDING) + _per_cell(specs, Kind.CHUNKED)
    window = max((spec.window for spec in specs), default=0)
    # A rejected draft is undone from the states before it, so a slot keeps one a proposed token.
    state = sum(spec.layers * spec.state_bytes for spec in specs) * (1 + deployment.draft_tokens)
    windows = _window_cells(slot_cells, window, deployment) if windowed else 0
    fixed = math.ceil(windowed * windows) + state * slots
    return CellPool(
        cell_bytes=growing,
        window_bytes=windowed,
        window=window,
        state_bytes=state,
        fixed_bytes=fixed,
        cells=cells,
        slot_cells=slot_cells,
        slots=slots,
        allocated_bytes=math.ceil(growing * cells) + fixed,
        steps=(
            *layer_steps(specs),
            Step("cells", _cells_formula(context, deployment), cells, "tokens"),
            *_buffers(cells, growing, windows, windowed, slots, state),
        ),
    )


def _buffers(cells: int, growing: float, windows: int, windowed: float, slots: int, state: int) -> Iterator[Step]:
    """What the engine takes at start, one line a buffer that the model needs."""
    parts = [math.ceil(growing * cells), math.ceil(windowed * windows), state * slots]
    yield Step("growing layers", f"{cells} x {growing:.10g}", parts[0], "bytes")
    if windowed:
        yield Step("layers with a window", f"{windows} cells x {windowed:.10g}", parts[1], "bytes")
    if state:
        yield Step("states", f"{slots} slots x {state}", parts[2], "bytes")
    if windowed or state:
        yield Step("allocated at start", " + ".join(str(part) for part in parts if part), sum(parts), "bytes")


def _window_cells(slot_cells: int, window: int, deployment: Deployment) -> int:
    """Cells of layers with a window: one cache for all slots if unified, else one a slot."""
    slots, batch = deployment.slots, deployment.micro_batch
    if deployment.unified:
        return window_cells(slot_cells, window, slots, batch)
    return window_cells(slot_cells, window, 1, batch) * slots


def _cells_formula(context: int, deployment: Deployment) -> str:
    if deployment.unified:
        return f"{context}, rounded up to 256"
    return f"{deployment.slots} slots x {context} / {deployment.slots}, each rounded up to 256"


def _per_cell(specs: Sequence[LayerSpec], kind: Kind) -> float:
    return sum((spec.layers * spec.token_bytes for spec in specs if spec.kind is kind), 0.0)


def _conv_in_fp32(model: ModelShape) -> ModelShape:
    layers = tuple(
        replace(layers, conv_element_bytes=_CONV_BYTES) if isinstance(layers, _Convolving) else layers
        for layers in model.layers
    )
    return replace(model, layers=layers)
