"""Where a config.json keeps its language model, and how many layers that has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.values import Values

__all__ = ["depth_of", "text_model"]

_NESTED = ("text_config", "llm_config", "language_config", "language_model", "thinker_config", "text_model_config")
_MAX_LAYERS = 4096
_DEPTH = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def depth_of(values: Values) -> int:
    """Layers of the model; raises ModelFileError when absent, 0 or absurd."""
    listed = values.listed("layers_block_type")
    found = values.positive(*_DEPTH, default=len(listed) if listed else None)
    if found > _MAX_LAYERS:
        raise ModelFileError(f"num_hidden_layers is {found}: no model has so many layers")
    return found


def text_model(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a config.json that describes the language model: of a multimodal model, the nested one."""
    for key in _NESTED:
        nested = config.get(key)
        if isinstance(nested, Mapping) and nested:
            return text_model(nested)
    return config
