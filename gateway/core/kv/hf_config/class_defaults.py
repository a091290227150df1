"""What a text model inside a multimodal config.json leaves to its configuration class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["left_to_class"]

_NAMES = (
    "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "intermediate_size",
    "vocab_size", "max_position_embeddings",
)  # fmt: skip
_SIZES: Mapping[str, tuple[int | None, ...]] = {
    "llama": (32, 4096, 32, None, 11008, 32000, 2048),
    "granite": (32, 4096, 32, None, 11008, 32000, 2048),
    "mistral": (32, 4096, 32, 8, 14336, 32000, 131072),
    "mixtral": (32, 4096, 32, 8, 14336, 32000, 131072),
    "qwen2": (32, 4096, 32, 32, 22016, 151936, 32768),
    "qwen3": (32, 4096, 32, 32, 22016, 151936, 32768),
    "gemma": (28, 3072, 16, 16, 24576, 256000, 8192),
    "gemma2": (26, 2304, 8, 4, 9216, 256000, 8192),
    "gemma3_text": (26, 2304, 8, 4, 9216, 262208, 131072),
    "phi": (24, 2048, 32, None, 8192, 51200, 2048),
    "phi3": (32, 3072, 32, None, 8192, 32064, 4096),
}
"""Defaults of LlamaConfig, MistralConfig, Qwen2Config and so on, by `model_type` (transformers 4.57 and 5.0,
src/transformers/models/*/configuration_*.py). A file that transformers writes leaves out what equals them."""


def left_to_class(own: Mapping[str, Any], around: Mapping[str, Any], family: str) -> Mapping[str, Any]:
    """Sizes that neither the text model nor the file around it states, by key; nothing for a model that isn't nested.

    A key that is there as `null` is stated: the class takes it as it is. A window is not assumed (MistralConfig's is
    4096): without one, too much may be counted, never too little.
    """
    if own is around or family not in _SIZES:
        return {}
    return {
        key: value
        for key, value in zip(_NAMES, _SIZES[family], strict=True)
        if value is not None and key not in own and around.get(key) is None
    }
