"""vLLM's KV pool, from the labels of `vllm:cache_config_info`: one sample for each data-parallel engine."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.core.kv.engine_pool import EnginePool
from gateway.engines.metrics_text import Sample

__all__ = ["block_of", "engine_pool", "pool_tokens"]


def pool_tokens(configs: Sequence[Sample]) -> int | None:
    """Tokens of all engines' pools: the figure that it logs, else blocks times their size.

    The first is requests of full length that fit, times their length: for models with states or windows no price per
    token follows from it.
    """
    total = 0
    for config in configs:
        size = _count(config, "kv_cache_size_tokens")
        if size is None:
            blocks, block = _count(config, "num_gpu_blocks"), block_of([config])
            if blocks is None or block is None:
                return None
            size = blocks * block
        total += size
    return total or None


def block_of(configs: Sequence[Sample]) -> int | None:
    """Tokens of a block of the layers that grow; hybrids' are larger than what was asked for."""
    if not configs:
        return None
    return _count(configs[0], "effective_attention_block_size") or _count(configs[0], "block_size")


def engine_pool(configs: Sequence[Sample]) -> EnginePool:
    """What else the labels tell; `auto` for a number format tells nothing."""
    if not configs:
        return EnginePool()
    first = configs[0].labels
    dtype, caching = first.get("cache_dtype", "auto"), first.get("enable_prefix_caching")
    each = [(_count(config, "num_gpu_blocks"), _positive(config, "kv_cache_max_concurrency")) for config in configs]
    blocks = [count for count, _ in each if count]
    concurrency = [fits for _, fits in each if fits]
    return EnginePool(
        blocks=sum(blocks) if len(blocks) == len(configs) else None,
        concurrency=sum(concurrency) if len(concurrency) == len(configs) else None,
        bytes=_count(configs[0], "kv_cache_memory_bytes"),
        dtype=None if dtype in ("auto", "None", "") else dtype,
        memory_share=_positive(configs[0], "gpu_memory_utilization"),
        prefix_caching={"True": True, "False": False}.get(caching or ""),
        groups=len(configs),
    )


def _count(config: Sample, name: str) -> int | None:
    value = config.labels.get(name, "")
    return int(value) if value.isdecimal() and int(value) > 0 else None


def _positive(config: Sample, name: str) -> float | None:
    try:
        value = float(config.labels.get(name, ""))
    except ValueError:
        return None
    return value if 0.0 < value < 1e9 else None
