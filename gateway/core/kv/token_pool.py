"""SGLang's KV pools: tokens for the growing layers, a second pool for windows, a third for recurrent states."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gateway.core.kv.deployment import Deployment
from gateway.core.kv.layer_spec import Kind, LayerSpec, layer_specs
from gateway.core.kv.model import ModelShape
from gateway.core.kv.steps import Step

__all__ = ["TokenPool", "token_pool"]

_WINDOW_RATIO = 0.8
"""Tokens of the window pool per token of the growing one (`--swa-full-tokens-ratio`)."""
_STATE_RATIO = 0.9
"""Bytes of the state pool per byte of the token pools (`--mamba-full-memory-ratio`)."""
_SLOTS_CACHED = 3
"""State slots a running request needs with the radix cache: its own and two for prefixes to be kept."""


@dataclass(frozen=True, slots=True)
class TokenPool:
    """Pages of `block` tokens. Bytes are those of the fullest rank.

    `growing` and `windowed`: bytes of one token in the layers of each pool; `window`: tokens that layers with a window
    keep. `state_bytes`: one state slot; `state_slots`: slots a request needs. `copies`: times the fullest rank's bytes
    that all ranks together hold. `in_flight`: tokens of one prefill chunk. `context`: the longest request.
    """

    block: int
    growing: float
    windowed: float
    window: int
    state_bytes: int
    state_slots: int
    copies: float
    in_flight: int
    context: int
    steps: tuple[Step, ...] = ()
    allocated_bytes: int = 0

    @property
    def block_bytes(self) -> int:
        """Bytes of one page of tokens with its share of the window pool; states are a pool of their own."""
        return math.ceil(self.block * (self.growing + _WINDOW_RATIO * self.windowed))

    def request_blocks(self, tokens: int) -> int:
        """Pages of the token pool that a request of `tokens` tokens holds."""
        return -(-tokens // self.block) if self.growing or self.windowed else 0

    def admission_blocks(self, tokens: int) -> int:
        """The same: a token takes its place in the pool once, whatever is in flight."""
        return self.request_blocks(tokens)

    def request_bytes(self, tokens: int) -> int:
        """Bytes of all pools that a settled request of `tokens` tokens takes."""
        return self._bytes(tokens, self.window)

    def admission_bytes(self, tokens: int) -> int:
        """The same while a chunk of its prompt is computed: windows are freed only afterwards."""
        return self._bytes(tokens, self.window + self.in_flight)

    def total_bytes(self, tokens: int) -> int:
        """`request_bytes` over all ranks, copies included."""
        return math.ceil(self.request_bytes(tokens) * self.copies)

    def stored_bytes(self, tokens: int) -> int:
        """Bytes that a request fills: one state, though the radix cache claims more slots."""
        return self.request_bytes(tokens) - (self.state_slots - 1) * self.state_bytes

    def blocks_in(self, pool_bytes: int) -> int:
        """Pages of the token pool when all pools together take `pool_bytes` bytes."""
        left = pool_bytes - self._states_in(pool_bytes) * self.state_bytes
        return int(left // self.block_bytes) if self.block_bytes else 0

    def capacity_tokens(self, pool_bytes: int) -> int:
        """Tokens of the token pool, the engine's `max_total_num_tokens`."""
        return self.blocks_in(pool_bytes) * self.block

    def sequences(self, pool_bytes: int, tokens: int) -> int:
        """Requests of `tokens` tokens at once: the pool that runs out first bounds them."""
        bounds = []
        if self.growing and tokens:
            bounds.append(self.blocks_in(pool_bytes) // self.request_blocks(tokens))
        if self.windowed and tokens:
            held = self._pages(min(tokens, self.window))
            bounds.append(int(self.blocks_in(pool_bytes) * _WINDOW_RATIO) // held)
        if self.state_bytes:
            bounds.append(self._states_in(pool_bytes) // self.state_slots)
        return min(bounds, default=0)

    def _pages(self, tokens: int) -> int:
        return -(-tokens // self.block)

    def _states_in(self, pool_bytes: int) -> int:
        if not self.state_bytes:
            return 0
        return max(0, int(pool_bytes * _STATE_RATIO / (1 + _STATE_RATIO)) // self.state_bytes - 1)

    def _bytes(self, tokens: int, kept: int) -> int:
        pages, windows = self._pages(tokens), self._pages(min(tokens, kept))
        held = self.block * (pages * self.growing + windows * self.windowed)
        return math.ceil(held) + self.state_slots * self.state_bytes


def token_pool(model: ModelShape, deployment: Deployment) -> TokenPool:
    """The pools that SGLang makes for a model. Raises ValueError if the model's layout is not known."""
    specs = layer_specs(model, deployment)
    stages = deployment.pipeline_parallel
    growing = [spec for spec in specs if spec.kind is Kind.GROWING]
    windowed = [spec for spec in specs if spec.kind in (Kind.SLIDING, Kind.CHUNKED)]
    states = [spec for spec in specs if spec.kind is Kind.STATE]
    on_rank = sum(_on_stage(spec, stages) * _per_token(spec) for spec in growing + windowed)
    everywhere = sum(spec.layers * _per_token(spec) for spec in growing + windowed)
    return TokenPool(
        block=deployment.block or 1,
        growing=sum(_on_stage(spec, stages) * _per_token(spec) for spec in growing),
        windowed=sum(_on_stage(spec, stages) * _per_token(spec) for spec in windowed),
        window=max((spec.window for spec in windowed), default=0),
        state_bytes=sum(_on_stage(spec, stages) * spec.state_bytes for spec in states),
        state_slots=_SLOTS_CACHED if deployment.prefix_caching else 1,
        copies=deployment.tensor_parallel * (everywhere / on_rank if on_rank else 1.0),
        in_flight=deployment.in_flight,
        context=deployment.context or model.max_context,
    )


def _on_stage(spec: LayerSpec, stages: int) -> int:
    return -(-spec.layers // stages)


def _per_token(spec: LayerSpec) -> float:
    return spec.row_bytes / spec.tokens_per_row
