"""One entry of the model catalogue (plain mappings, as a YAML reader gives them) to a ModelShape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.core.confidence import Confidence
from gateway.core.kv.grouped import ChunkedLocalGqa, EncoderOnly, FullGqa, KvShared, SlidingGqa
from gateway.core.kv.latent import CompressedMla, CompressorState, DsaIndexer, Mla, SlidingMla
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.model import ModelShape
from gateway.core.kv.recurrent import GatedDeltaNet, Kda, Mamba2

__all__ = ["attention_from_catalog", "model_shape_from_catalog"]

_BILLION = 1e9

_KINDS: dict[str, tuple[Callable[..., AttentionLayers], dict[str, str]]] = {
    "full_gqa": (FullGqa, {"kv_heads": "kv_heads", "head_dim": "head_dim", "head_dim_v": "head_dim_v"}),
    "sliding_gqa": (
        SlidingGqa,
        {"kv_heads": "kv_heads", "head_dim": "head_dim", "head_dim_v": "head_dim_v", "window": "window"},
    ),
    "chunked_local_gqa": (
        ChunkedLocalGqa,
        {"kv_heads": "kv_heads", "head_dim": "head_dim", "head_dim_v": "head_dim_v", "window": "chunk"},
    ),
    "kv_shared": (KvShared, {}),
    "encoder_only": (EncoderOnly, {}),
    "mla": (Mla, {"kv_lora_rank": "kv_lora_rank", "rope_dim": "rope_dim", "fp8_row_bytes": "fp8_row_bytes"}),
    "dsa_indexer": (DsaIndexer, {"bytes_per_entry": "bytes_per_entry", "tokens_per_entry": "tokens_per_entry"}),
    "compressed_mla": (
        CompressedMla,
        {"ratio": "ratio", "row_bytes_bf16": "row_bytes_bf16", "row_bytes_fp8": "row_bytes_fp8"},
    ),
    "sliding_mla": (
        SlidingMla,
        {"window": "window", "row_bytes_bf16": "row_bytes_bf16", "row_bytes_fp8": "row_bytes_fp8"},
    ),
    "compressor_state": (CompressorState, {"window": "window", "bytes_per_token": "bytes_per_token"}),
    "gated_delta_net": (
        GatedDeltaNet,
        {
            "k_heads": "k_heads",
            "v_heads": "v_heads",
            "k_dim": "k_dim",
            "v_dim": "v_dim",
            "conv_kernel": "conv_kernel",
        },
    ),
    "mamba2": (
        Mamba2,
        {"heads": "heads", "head_dim": "head_dim", "state": "state", "groups": "groups", "conv_kernel": "conv_kernel"},
    ),
    "kda": (Kda, {"heads": "heads", "head_dim": "head_dim", "conv_kernel": "conv_kernel"}),
}
"""Catalogue `kind` -> the value type and which catalogue key feeds which of its fields."""


def attention_from_catalog(entry: Mapping[str, Any]) -> AttentionLayers:
    """One item of an entry's `attention` list. Raises ValueError on an unknown kind or a missing field."""
    kind = str(entry.get("kind"))
    if kind not in _KINDS:
        raise ValueError(f"unknown attention kind {kind!r}; known: {', '.join(sorted(_KINDS))}")
    build, fields = _KINDS[kind]
    given = {field: int(entry[key]) for key, field in fields.items() if entry.get(key) is not None}
    try:
        return build(layers=int(entry["layers"]), **given)
    except (KeyError, TypeError) as missing:
        raise ValueError(f"attention of kind {kind!r} is incomplete: {missing}") from missing


def model_shape_from_catalog(entry: Mapping[str, Any]) -> ModelShape:
    """A catalogue entry as a value. Raises ValueError if its id or an attention field is missing or wrong, or its
    confidence is no word for one.

    An entry without attention layers is an encoder if it says so (`kv_lifetime`), else a model of unknown layout.
    """
    if not entry.get("id"):
        raise ValueError("a model entry needs an id")
    attention = entry.get("attention") or ()
    depth = int(entry.get("layers") or 0)
    encoder = not attention and "kv_lifetime" in entry
    layers = (EncoderOnly(depth),) if encoder else tuple(attention_from_catalog(item) for item in attention)
    moe: Mapping[str, Any] = entry.get("moe") or {}
    experts, routed = int(moe.get("experts") or 0), int(moe.get("per_token") or 0)
    total = _first(entry, "calc_total_b", "params_total_b")
    read = _first(entry, "calc_read_b", "params_active_b")
    hidden, vocab = int(entry.get("hidden") or 0), int(entry.get("vocab") or 0)
    return ModelShape(
        id=str(entry["id"]),
        aliases=tuple(str(alias) for alias in entry.get("aliases") or ()),
        family=str(entry.get("family") or ""),
        layers=layers,
        params_total=total,
        params_active=_first(entry, "params_active_b", "calc_read_b"),
        read_params=read,
        expert_params=_expert_params(total, read, float(hidden * vocab), experts, routed),
        experts=experts,
        experts_per_token=routed,
        max_context=int(entry.get("max_context") or 0),
        hidden=hidden,
        depth=depth,
        vocab=vocab,
        draft_layers=int(entry.get("mtp_layers") or 0),
        query_heads=int(entry.get("q_heads") or 0),
        kv_known=bool(layers),
        source=str(entry.get("source") or ""),
        confidence=Confidence(entry.get("confidence") or "high"),
    )


def _first(entry: Mapping[str, Any], *keys: str) -> float:
    for key in keys:
        if entry.get(key):
            return float(entry[key]) * _BILLION
    return 0.0


def _expert_params(total: float, read: float, embedding: float, experts: int, routed: int) -> float:
    """Weights of all routed experts: what is not read for one token, minus the input table, is the idle experts."""
    if not experts > routed > 0:
        return 0.0
    idle = max(0.0, total - read - embedding)
    return idle / (1.0 - routed / experts)
