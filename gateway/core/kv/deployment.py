"""How a model is served: everything beside its layers that decides what one request takes of the KV pool."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.kv.dtype import KvDtype

__all__ = ["Deployment"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """One engine's settings as far as KV memory depends on them; the defaults are the engines' own.

    `context`: tokens of the longest request (vLLM `max_model_len`, SGLang `context_length`) or, for llama.cpp, of the
    whole cache (`n_ctx`); 0 takes the model's own. `slots`: requests at once (llama.cpp `--parallel`, SGLang
    `max_running_requests`). `unified`: llama.cpp's slots share one cache. `batched_tokens`: tokens of one scheduler
    step (vLLM `max_num_batched_tokens`, SGLang `chunked_prefill_size`); `overlapping_batches`: steps under way at once,
    2 with vLLM's asynchronous scheduling. `block`: the engine's base block in tokens, 0 for its default.
    `micro_batch`: llama.cpp's `--ubatch-size`. `value_dtype`: V stored otherwise than K (llama.cpp
    `--cache-type-v`). `draft_tokens`: tokens a built-in drafting head proposes a step, 0 without speculation.
    `state_element_bytes`: 4 for recurrent states in fp32, 2 in 16 bit (vLLM `--mamba-ssm-cache-dtype`).
    """

    engine: str = "vllm"
    kv_dtype: KvDtype = KvDtype.F16
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    context: int = 0
    slots: int = 1
    unified: bool = False
    batched_tokens: int = 8192
    overlapping_batches: int = 1
    prefix_caching: bool = True
    draft_tokens: int = 0
    block: int = 0
    micro_batch: int = 512
    value_dtype: KvDtype | None = None
    state_element_bytes: int = 4

    def __post_init__(self) -> None:
        """Raises ValueError where a count that must be at least one is not."""
        for name in ("tensor_parallel", "pipeline_parallel", "slots", "overlapping_batches"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("context", "batched_tokens", "draft_tokens", "block", "micro_batch"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")

    @property
    def ranks(self) -> int:
        """Devices that hold a part of the cache."""
        return self.tensor_parallel * self.pipeline_parallel

    @property
    def in_flight(self) -> int:
        """Tokens scheduled but not settled, which sliding windows hold beside their window."""
        return self.batched_tokens * self.overlapping_batches
