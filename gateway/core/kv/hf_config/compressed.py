"""DeepSeek V4's compressed latent attention in a config.json."""

from __future__ import annotations

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.latent import CompressedMla, CompressorState, DsaIndexer, SlidingMla
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.values import Values

__all__ = ["compressed_layers", "is_compressed"]

_RATES = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128, "sliding_attention": 0}
_INDEXED = 4
"""Layers of this ratio pick rows by an index, and their compressor looks at two spans that overlap."""


def is_compressed(values: Values) -> bool:
    """Whether the layers compress what they cache."""
    if values.listed("compress_ratios"):
        return True
    kinds = values.listed("layer_types") or ()
    return any(isinstance(kind, str) and _RATES.get(kind) for kind in kinds)


def compressed_layers(values: Values, depth: int) -> tuple[AttentionLayers, ...]:
    """Rows of every layer: compressed ones, the index, a sliding window of whole rows, what still has to be folded.

    Layout as vLLM stores it: 2 bytes an element in 16 bit; in fp8 the rotary part stays in 16 bit and every 64 elements
    share a scale, padded to 8 bytes. The compressors' inputs (kv and score) are fp32.
    """
    ratios = _ratios(values, depth)
    wide, rotary = values.positive("head_dim"), values.whole("qk_rope_head_dim", default=64)
    plain = wide - rotary
    bf16, fp8 = 2 * wide, plain + 2 * rotary + -(-plain // (64 * 8)) * 8
    index = values.positive("index_head_dim")
    found: list[AttentionLayers] = []
    for ratio in ratios:
        found.append(SlidingMla(1, values.positive("sliding_window"), bf16, fp8))
        if not ratio:
            continue
        found.append(CompressedMla(1, ratio, bf16, fp8))
        spans = 2 if ratio == _INDEXED else 1
        found.append(CompressorState(1, spans * ratio, 2 * 4 * spans * wide))
        if ratio == _INDEXED:
            found.append(DsaIndexer(1, index + 4, ratio))
            found.append(CompressorState(1, spans * ratio, 2 * 4 * spans * index))
    return tuple(found)


def _ratios(values: Values, depth: int) -> tuple[int, ...]:
    if values.listed("compress_ratios"):
        return values.each(("compress_ratios",), depth)
    kinds = values.listed("layer_types") or []
    if len(kinds) < depth:
        raise ModelFileError(f"layer_types has {len(kinds)} layers, but num_hidden_layers is {depth}")
    unknown = next((kind for kind in kinds[:depth] if not isinstance(kind, str) or kind not in _RATES), None)
    if unknown is not None:
        raise ModelFileError(f"layer_types names a kind of layer that is not known: {str(unknown)[:40]!r}")
    return tuple(values.whole(f"compress_rates.{kind}", default=_RATES[kind]) for kind in kinds[:depth])
