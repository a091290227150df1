"""The longest sequence that a config.json allows, as vLLM derives it."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.core.kv.values import Values

__all__ = ["max_context"]

_KEYS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length", "max_seq_length",
    "seq_len", "model_max_length",
)  # fmt: skip
_LARGEST = 2**20
"""Beyond any factor of a model; keeps out infinity and what is no number."""
_UNSCALED = frozenset(("", "default", "mrope", "su", "longrope", "llama3", "proportional"))
"""Kinds of rope scaling for which max_position_embeddings is already the scaled length."""


def max_context(values: Values) -> int:
    """Tokens; 0 when the config doesn't say."""
    length = values.whole(*_KEYS, default=0)
    scaling = values.get("rope_scaling", "rope_parameters")
    if not isinstance(scaling, Mapping) or "gemma3" in values.text("model_type"):
        return length
    kind = str(scaling.get("rope_type") or scaling.get("type") or "")
    factor = scaling.get("factor")
    if kind in _UNSCALED or not isinstance(factor, int | float) or not 1 <= factor <= _LARGEST:
        return length
    original = scaling.get("original_max_position_embeddings")
    if kind == "yarn" and isinstance(original, int) and original > 0:
        length = original
    return int(length * factor)
