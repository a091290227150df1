"""SGLang's KV pools: tokens for the growing layers, a second pool for windows, a third for recurrent states.

Read from pool_configurator.py and kv_cache_configurator.py of SGLang 0.5.19 and checked on its logs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.core.kv.deployment import Deployment
from gateway.core.kv.layer_spec import Kind, LayerSpec
from gateway.core.kv.layer_specs import layer_specs
from gateway.core.kv.model import ModelShape
from gateway.core.kv.stage_bytes import stage_bytes
from gateway.core.kv.steps import Step, layer_steps

__all__ = ["TokenPool", "token_pool"]

_WINDOW_RATIO = 0.8
"""Tokens of the window pool per token of the growing one (`--swa-full-tokens-ratio`)."""
_COMPRESSED_WINDOW_RATIO = 0.1
"""The same for DeepSeek V4, whose windows are short."""
_COMPRESSED_PAGE = 256
"""Tokens of a page of DeepSeek V4 (SGLang wants a multiple of 128)."""
_STATE_RATIO = 0.9
"""Bytes of the state pool per byte of the token pools (`--mamba-full-memory-ratio`)."""
_STATES_CACHED = 3
"""State slots that a request claims with the radix cache: its own and two for prefixes to be kept."""
_STATES_BUFFERED = 2
"""State slots more where drafts are verified ahead of the scheduler."""


@dataclass(frozen=True, slots=True)
class TokenPool:
    """Pages of `block` tokens. Bytes are those of the fullest rank.

    `growing` and `windowed`: bytes of one token in the layers of each pool; `window`: tokens that layers with a window
    keep; `window_ratio`: tokens of their pool per token of the growing one. `state_bytes`: one state slot;
    `state_slots`: slots a request needs. `everywhere`: growing, windowed and state bytes summed over all ranks.
    `in_flight`: tokens of one prefill chunk. `context`: the longest request.
    """

    block: int
    growing: float
    windowed: float
    window: int
    window_ratio: float
    state_bytes: int
    state_slots: int
    everywhere: tuple[float, float, int]
    in_flight: int
    context: int
    steps: tuple[Step, ...] = ()
    allocated_bytes: int = 0

    @property
    def token_bytes(self) -> float:
        """Bytes of one token of the growing pool with its share of the window pool."""
        return self.growing + self.window_ratio * self.windowed

    @property
    def block_bytes(self) -> int:
        """Bytes of one page of tokens with its share of the window pool; states are a pool of their own."""
        return math.ceil(self.block * self.token_bytes)

    def request_blocks(self, tokens: int) -> int:
        """Pages of the token pool that a request of `tokens` tokens holds."""
        return -(-tokens // self.block) if self.growing or self.windowed else 0

    def admission_blocks(self, tokens: int) -> int:
        """The same: a token takes its place in the pool once, whatever is in flight."""
        return self.request_blocks(tokens)

    def request_bytes(self, tokens: int) -> int:
        """Bytes of all pools that a settled request of `tokens` tokens takes."""
        return self._bytes(tokens, self.window) + self.state_slots * self.state_bytes

    def admission_bytes(self, tokens: int) -> int:
        """The same while a chunk of its prompt is computed: windows are freed only afterwards."""
        return self._bytes(tokens, self.window + self.in_flight) + self.state_slots * self.state_bytes

    def total_bytes(self, tokens: int) -> int:
        """`request_bytes` over all ranks, copies included."""
        growing, windowed, state = self.everywhere
        pages, windows = self._pages(tokens), self._pages(min(tokens, self.window))
        return math.ceil(self.block * (pages * growing + windows * windowed)) + self.state_slots * state

    def stored_bytes(self, tokens: int) -> int:
        """Bytes that a request fills: one state, though it claims more slots."""
        return self._bytes(tokens, self.window) + self.state_bytes

    def blocks_in(self, pool_bytes: int) -> int:
        """Pages of the token pool when all pools together take `pool_bytes` bytes."""
        states = self._states_in(pool_bytes)
        left = pool_bytes - (states + 1) * self.state_bytes if states else pool_bytes
        return int(max(0, left) // self.token_bytes) // self.block if self.token_bytes else 0

    def capacity_tokens(self, pool_bytes: int) -> int:
        """Tokens of the token pool, the engine's `max_total_num_tokens`."""
        return self.blocks_in(pool_bytes) * self.block

    def concurrency(self, pool_bytes: int) -> float:
        """Requests of full length that fit."""
        return float(self.sequences(pool_bytes, self.context))

    def sequences(self, pool_bytes: int, tokens: int) -> int:
        """Requests of `tokens` tokens at once: the pool that runs out first bounds them."""
        pages, bounds = self.blocks_in(pool_bytes), []
        if self.growing and tokens:
            bounds.append(pages // self.request_blocks(tokens))
        if self.windowed and tokens:
            bounds.append(int(pages * self.window_ratio) // self._pages(min(tokens, self.window)))
        if self.state_bytes:
            bounds.append(self._states_in(pool_bytes) // self.state_slots)
        return min(bounds, default=0)

    def steps_in(self, pool_bytes: int) -> tuple[Step, ...]:
        """What the pools hold when all together take `pool_bytes` bytes, line by line."""
        if not self.token_bytes:
            return ()
        states = self._states_in(pool_bytes)
        share = f"{pool_bytes} x {_STATE_RATIO} / {1 + _STATE_RATIO} / {self.state_bytes} - 1"
        return (
            *((Step("state slots", share, states, "slots"),) if self.state_bytes else ()),
            Step("tokens", f"what is left / {self.token_bytes:.10g}", self.capacity_tokens(pool_bytes), "tokens"),
        )

    def _pages(self, tokens: int) -> int:
        return -(-tokens // self.block)

    def _states_in(self, pool_bytes: int) -> int:
        if not self.state_bytes:
            return 0
        if not self.token_bytes:
            return max(0, pool_bytes // self.state_bytes - 1)
        return max(0, int(pool_bytes * _STATE_RATIO / (1 + _STATE_RATIO)) // self.state_bytes - 1)

    def _bytes(self, tokens: int, kept: int) -> int:
        pages, windows = self._pages(tokens), self._pages(min(tokens, kept))
        return math.ceil(self.block * (pages * self.growing + windows * self.windowed))


def token_pool(model: ModelShape, deployment: Deployment) -> TokenPool:
    """The pools that SGLang makes for a model. Raises ValueError if the model's layout is not known."""
    specs = layer_specs(model, deployment)
    standing = 0 if deployment.draft_tokens else model.draft_layers
    growing, windowed, state = stage_bytes(specs, deployment.pipeline_parallel, standing)
    everywhere = stage_bytes(specs, 1, standing)
    tp = deployment.tensor_parallel
    compressed = any(spec.compressed for spec in specs)
    ratio = _COMPRESSED_WINDOW_RATIO if compressed else _WINDOW_RATIO if growing else 1.0
    return TokenPool(
        block=deployment.block or (_COMPRESSED_PAGE if compressed else 1),
        growing=growing,
        windowed=windowed,
        window=max((spec.window for spec in specs), default=0),
        window_ratio=ratio,
        state_bytes=state,
        state_slots=_state_slots(deployment),
        everywhere=(everywhere[0] * tp, everywhere[1] * tp, everywhere[2] * tp),
        in_flight=deployment.in_flight,
        context=deployment.context or model.max_context,
        steps=(*layer_steps(specs), *_steps(specs, (growing, windowed, state), ratio, deployment)),
    )


def _steps(
    specs: Sequence[LayerSpec], rank: tuple[float, float, int], ratio: float, deployment: Deployment
) -> Iterator[Step]:
    growing, windowed, state = rank
    stages, slots = deployment.pipeline_parallel, _state_slots(deployment)
    plain = [spec for spec in specs if spec.kind is Kind.GROWING]
    formula = " + ".join(f"{spec.on_stage(stages)} x {spec.token_bytes:g}" for spec in plain)
    yield Step("token in the growing layers", formula or "none grow", growing, "bytes")
    if windowed:
        yield Step("token in the layers with a window", "sum over the layers of one rank", windowed, "bytes")
        shared = f"{growing:.10g} + {ratio} x {windowed:.10g}"
        yield Step("token with its share of the window pool", shared, growing + ratio * windowed, "bytes")
    if state:
        yield Step("states of a request", f"{slots} slots x {state}", slots * state, "bytes")


def _state_slots(deployment: Deployment) -> int:
    if not deployment.prefix_caching:
        return 1 + deployment.draft_tokens
    return _STATES_CACHED + (_STATES_BUFFERED + deployment.draft_tokens if deployment.draft_tokens else 0)
