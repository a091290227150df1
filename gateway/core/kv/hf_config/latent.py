"""Latent attention (MLA) in a config.json, and the index of sparse attention beside it."""

from __future__ import annotations

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.hf_config.kinds import LayerKind
from gateway.core.kv.latent import DsaIndexer, Mla
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.values import Values

__all__ = ["index_layers", "latent_layer", "unfolded_dim", "uses_latent"]

_UNFOLDED = frozenset(("minicpm3", "plm"))
"""Families that project with low rank but whose engines cache whole heads."""
_FP8_SCALES = 128
"""Elements of the latent vector that share one fp32 scale in the sparse fp8 layout."""


def uses_latent(values: Values) -> bool:
    """Whether full-attention layers cache one latent vector in place of heads."""
    if values.text("model_type") in _UNFOLDED or not values.flag("use_mla", True):
        return False
    return bool(values.whole("kv_lora_rank", default=0))


def unfolded_dim(values: Values) -> int:
    """Elements of a cached head where a family projects with low rank but caches whole heads; 0 elsewhere."""
    if values.text("model_type") not in _UNFOLDED:
        return 0
    return values.positive("qk_nope_head_dim") + values.positive("qk_rope_head_dim")


def latent_layer(values: Values) -> Mla:
    """One layer of latent attention. Raises ModelFileError without `qk_rope_head_dim`, unless positions aren't used."""
    rank = values.positive("kv_lora_rank")
    nowhere = values.flag("mla_use_nope") or values.text("model_type").startswith("glm5_next")
    rope = values.whole("qk_rope_head_dim", default=0 if nowhere else None)
    if not _sparse(values):
        return Mla(1, rank, rope)
    return Mla(1, rank, rope, rank + 4 * -(-rank // _FP8_SCALES) + 2 * rope)


def index_layers(values: Values, kinds: tuple[LayerKind, ...]) -> tuple[AttentionLayers, ...]:
    """The index keys of sparse attention: 8 bit and an fp32 scale a token, in the layers that have an index."""
    full = [layer for layer, kind in enumerate(kinds) if kind is LayerKind.FULL]
    if (sparse := values.listed("sparse_attention_config.sparse_attention_freq")) is not None:
        chosen = sum(1 for layer in full if layer < len(sparse) and sparse[layer])
        width = values.positive("sparse_attention_config.sparse_index_dim")
        return (DsaIndexer(chosen, _entry(width)),) if chosen else ()
    if not _sparse(values):
        return ()
    chosen = sum(1 for layer in full if _indexes(values, layer))
    return (DsaIndexer(chosen, _entry(values.positive("index_head_dim")), values.positive("index_kpool", default=1)),)


def _sparse(values: Values) -> bool:
    return bool(values.get("index_topk")) and bool(values.get("index_head_dim"))


def _entry(width: int) -> int:
    return width + 4 * -(-width // _FP8_SCALES)


def _indexes(values: Values, layer: int) -> bool:
    """Whether a layer has an index of its own: by list, by pattern (S shares), or every so many layers."""
    types = values.listed("indexer_types")
    if types is not None:
        if layer >= len(types):
            raise ModelFileError(f"indexer_types has {len(types)} layers, too few")
        return bool(types[layer] == "full")
    pattern = values.text("index_topk_pattern")
    if pattern:
        return layer >= len(pattern) or pattern[layer] != "S"
    every = max(values.whole("index_topk_freq", default=1), 1)
    offset = values.whole("index_skip_topk_offset", default=2)
    return max(layer - offset + 1, 0) % every == 0
