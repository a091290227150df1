"""One model on one device behind one engine: sizes of the KV cache, limits of the scheduler, step times."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gateway.sim.hardware import DEVICES, MODELS, RUNTIME_BYTES, Device, Model
from gateway.sim.step_time import StepTime

__all__ = ["EngineProfile", "engine_profile"]

PLAIN_BLOCK = 16
"""vLLM's default block size in tokens for models without recurrent layers."""
STATE_PAGES = 2
"""Pages that vLLM holds a state group and request with prefix caching on."""
MAX_NUM_SEQS = 256
"""vLLM's default limit of running sequences on cards of this class."""


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """Everything an emulated engine needs to know about itself."""

    device: str
    model: str
    step_time: StepTime
    block_size: int
    """Tokens a KV block holds."""
    num_blocks: int
    """Blocks of the pool."""
    state_blocks: int
    """Blocks a sequence holds beside its tokens, for recurrent state."""
    max_num_seqs: int
    max_batched_tokens: int
    """Token budget of one iteration; a longer prompt is prefilled in chunks."""
    max_model_len: int
    """Tokens of prompt and answer together."""
    prefix_caching: bool = True

    def __post_init__(self) -> None:
        """Raise ValueError where a full request does not fit the pool, or a full batch not the budget."""
        if self.max_batched_tokens < self.max_num_seqs:
            raise ValueError("max_batched_tokens is below max_num_seqs: decodes alone would exceed the budget")
        if self.blocks_for(self.max_model_len) > self.num_blocks:
            raise ValueError(f"{self.num_blocks} blocks hold no request of max_model_len {self.max_model_len} tokens")

    def blocks_for(self, tokens: int) -> int:
        """Blocks that a sequence of `tokens` holds."""
        return -(-tokens // self.block_size) + self.state_blocks

    @property
    def kv_cache_size_tokens(self) -> int:
        """Capacity as vLLM prints it: requests of full length that fit, times that length."""
        return int(self.num_blocks / self.blocks_for(self.max_model_len) * self.max_model_len)

    def scaled(self, speed: float) -> EngineProfile:
        """The same engine on hardware `speed` times faster."""
        return self if speed == 1.0 else replace(self, step_time=self.step_time.scaled(1.0 / speed))


def engine_profile(device: str, model: str = "Qwen3-30B-A3B") -> EngineProfile:
    """The profile of `model` on `device`, both by name; KeyError for an unknown one, ValueError if it does not fit."""
    return _compile(DEVICES[device], MODELS[model])


def _compile(device: Device, model: Model) -> EngineProfile:
    weights = model.parameters * device.weight_bytes
    pool = device.memory_bytes * device.usable_share - weights - RUNTIME_BYTES
    # Hybrid models: the block grows until its page holds one layer's recurrent state, in steps of 16 tokens.
    block_size = PLAIN_BLOCK * max(1, math.ceil(model.state_bytes_per_layer / model.kv_bytes_per_layer / PLAIN_BLOCK))
    num_blocks = int(pool // (model.attention_layers * model.kv_bytes_per_layer * block_size))
    state_blocks = model.state_groups * STATE_PAGES
    room = (num_blocks - state_blocks) * block_size
    weight_rate = device.bandwidth * device.weight_efficiency
    mfu = device.moe_mfu if model.experts else device.dense_mfu
    return EngineProfile(
        device=device.name,
        model=model.name,
        step_time=StepTime(
            overhead_s=device.overhead_s,
            shared_weights_s=model.shared_parameters * device.weight_bytes / weight_rate,
            expert_weights_s=model.expert_parameters * device.weight_bytes / weight_rate,
            experts=model.experts,
            experts_per_token=model.experts_per_token,
            kv_token_s=model.attention_layers * model.kv_bytes_per_layer / (device.bandwidth * device.kv_efficiency),
            sequence_s=device.sequence_s,
            prefill_token_s=2.0 * model.active_parameters / (mfu * device.flops),
            prefill_half_depth=model.prefill_half_depth,
        ),
        block_size=block_size,
        num_blocks=num_blocks,
        state_blocks=state_blocks,
        max_num_seqs=MAX_NUM_SEQS,
        max_batched_tokens=device.max_batched_tokens,
        max_model_len=min(model.max_context, room),
    )
