"""How many devices share every layer where nobody says."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.core.kv.engine_limits import splits
from gateway.core.kv.model import ModelShape

__all__ = ["SPLITS_LAYERS", "usual_tensor_parallel"]

SPLITS_LAYERS = frozenset({"llama.cpp", "ollama"})
"""Engines that give each device some of the layers: one copy of the weights over all, and no tensor parallelism."""


def usual_tensor_parallel(engine: str, count: int, models: Sequence[ModelShape]) -> int:
    """What `count` devices are counted as where nobody says: the most of them that can share each layer.

    The largest divisor of `count` that the heads of all `models` allow; what is left over are copies of the weights.
    """
    if engine in SPLITS_LAYERS:
        return 1
    fitting = (tp for tp in range(count, 1, -1) if count % tp == 0)
    return next((tp for tp in fitting if all(splits(model, tp) for model in models)), 1)
