"""What each layer of a config.json caches: heads and head sizes of full, sliding and chunked layers, shared caches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.grouped import ChunkedLocalGqa, EncoderOnly, FullGqa, KvShared, SlidingGqa
from gateway.core.kv.hf_config.compressed import compressed_layers, is_compressed
from gateway.core.kv.hf_config.kinds import LayerKind, layer_kinds, window_of
from gateway.core.kv.hf_config.latent import index_layers, latent_layer, unfolded_dim, uses_latent
from gateway.core.kv.hf_config.nesting import depth_of
from gateway.core.kv.hf_config.recurrent import recurrent_layer
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.linear_state import LightningAttention, Mamba1
from gateway.core.kv.recurrent import GatedDeltaNet, Mamba2
from gateway.core.kv.values import Values

__all__ = ["HEADS", "HIDDEN", "Attention", "head_dim", "key_value_heads", "layers_of", "query_heads"]

HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
HIDDEN = ("hidden_size", "n_embd", "d_model", "dim", "model_dim")
_KV_HEADS = (
    "num_key_value_heads", "n_head_kv", "num_kv_heads", "n_kv_heads", "multi_query_group_num", "attn_config.kv_n_heads",
    "num_key_value_heads_per_layer", "num_attention_groups",
)  # fmt: skip
_ENCODER_NAMES = """
bert roberta xlm-roberta xlm-roberta-xl camembert distilbert electra albert mpnet modernbert nomic_bert new deberta
deberta-v2 eurobert ernie jina_bert neobert gte
"""
_ENCODERS = frozenset(_ENCODER_NAMES.split())

_IN_MODEL_DTYPE = (GatedDeltaNet, LightningAttention, Mamba1, Mamba2)
"""States that vLLM keeps in the model's dtype unless it is told otherwise; KDA's are fp32 always."""


@dataclass(frozen=True, slots=True)
class Attention:
    """All layers of a model, one value each layer and cache, and what a person should know of how they were read."""

    kinds: tuple[LayerKind, ...]
    layers: tuple[AttentionLayers, ...]
    caveats: tuple[str, ...] = ()


def layers_of(values: Values, max_context: int) -> Attention:
    """Every layer's cache. Raises ModelFileError naming the key that is missing or contradicts another."""
    depth = depth_of(values)
    if _encodes(values):
        return Attention((LayerKind.NONE,) * depth, (EncoderOnly(depth),))
    if values.flag("is_encoder_decoder"):
        raise ModelFileError("is_encoder_decoder is true: caches of cross attention are not known here")
    if _blocks(values):
        return _block_configs(values, depth)
    if is_compressed(values):
        return Attention((LayerKind.FULL,) * depth, compressed_layers(values, depth))
    kinds = layer_kinds(values, depth)
    shared = _shared(values, depth)
    found: list[AttentionLayers] = []
    for layer, kind in enumerate(kinds):
        if layer in shared:
            found.append(KvShared(1))
        else:
            found.extend(_layer(values, kind, layer, max_context))
    return Attention(kinds, tuple(found) + index_layers(values, kinds), _caveats(values, found))


def query_heads(values: Values) -> int:
    """Query heads of a layer."""
    return values.largest(*HEADS) or values.positive(*HEADS)


def head_dim(values: Values) -> int:
    """Elements of one head: stated, else the hidden size over the query heads."""
    stated = unfolded_dim(values) or values.stated("head_dim", "attention_head_dim", "kv_channels", default=0)
    if stated:
        return stated
    hidden = values.stated("attention_hidden_size", default=0) or values.positive(*HIDDEN)
    heads = query_heads(values)
    if hidden % heads:
        raise ModelFileError(f"head_dim is missing, and hidden_size {hidden} is no multiple of {heads} heads")
    return hidden // heads


def key_value_heads(values: Values, depth: int) -> tuple[int, ...]:
    """KV heads of each layer; as many as query heads where the config names none (plain multi-head attention)."""
    if values.get("new_decoder_architecture") is not True and values.flag("multi_query"):
        return (1,) * depth
    if values.get(*_KV_HEADS) is None:
        return values.each(HEADS, depth)
    if isinstance(values.get(*_KV_HEADS), list):
        return values.each(_KV_HEADS, depth)  # a layer without attention has none
    heads = values.positive(*_KV_HEADS)
    if heads > query_heads(values):
        raise ModelFileError(f"{heads} KV heads are more than the {query_heads(values)} query heads")
    return (heads,) * depth


def _layer(values: Values, kind: LayerKind, layer: int, max_context: int) -> list[AttentionLayers]:
    match kind:
        case LayerKind.NONE:
            return []
        case LayerKind.LINEAR | LayerKind.MAMBA | LayerKind.CONVOLUTION:
            return [recurrent_layer(values, kind)]
        case LayerKind.PARALLEL:
            return [_grouped(values, LayerKind.FULL, layer, max_context), recurrent_layer(values, LayerKind.MAMBA)]
        case _ if uses_latent(values):
            return [latent_layer(values)] * values.positive("attentions_per_layer", default=1)
        case _:
            return [_grouped(values, kind, layer, max_context)]


def _grouped(values: Values, kind: LayerKind, layer: int, max_context: int) -> AttentionLayers:
    heads, wide = key_value_heads(values, depth_of(values))[layer], head_dim(values)
    if kind is LayerKind.CHUNKED:
        return ChunkedLocalGqa(1, heads, wide, values.positive("attention_chunk_size"))
    if kind is LayerKind.SLIDING:
        window = window_of(values)
        if not window:
            raise ModelFileError("sliding_window is missing, though layers with a sliding window are listed")
        heads = values.stated("swa_num_key_value_heads", "attention_other_setting.num_attention_groups", default=heads)
        wide = values.stated("swa_head_dim", "attention_other_setting.head_dim", default=wide)
        narrow = values.stated("swa_v_head_dim", "v_head_dim", default=wide)
        if max_context and window >= max_context:
            return FullGqa(1, heads, wide, _unlike(narrow, wide))
        return SlidingGqa(1, heads, wide, window, _unlike(narrow, wide))
    wide = values.stated("global_head_dim", default=wide)
    if values.flag("attention_k_eq_v"):
        heads = values.stated("num_global_key_value_heads", default=heads)
    if wide != head_dim(values) or unfolded_dim(values):
        return FullGqa(1, heads, wide)
    return FullGqa(1, heads, wide, _unlike(values.stated("v_head_dim", default=wide), wide))


def _unlike(value_dim: int, key_dim: int) -> int | None:
    return None if value_dim == key_dim else value_dim


def _shared(values: Values, depth: int) -> frozenset[int]:
    """Layers that read an earlier layer's cache: the last of Gemma 3n and 4, all but one of each group with CLA."""
    last = values.whole("num_kv_shared_layers", default=0)
    if last >= depth:
        raise ModelFileError(f"num_kv_shared_layers is {last}, but num_hidden_layers is {depth}")
    if last:
        return frozenset(range(depth - last, depth))
    if values.flag("use_cla"):
        factor = values.positive("cla_share_factor", default=2)
        return frozenset(layer for layer in range(depth) if layer % factor)
    return frozenset()


def _encodes(values: Values) -> bool:
    """Bidirectional models: all of them at once, nothing kept. Gemma 4's "vision" is not this."""
    if values.text("model_type") in _ENCODERS and not values.flag("is_decoder"):
        return True
    return values.get("use_bidirectional_attention") is True or values.get("is_causal") is False


def _blocks(values: Values) -> bool:
    return bool(values.listed("block_configs"))


def _block_configs(values: Values, depth: int) -> Attention:
    """Layers that a search over architectures chose one by one (Llama-Nemotron): heads a group, or none."""
    kinds: list[LayerKind] = []
    found: list[AttentionLayers] = []
    blocks = values.listed("block_configs") or []
    if len(blocks) != depth:
        raise ModelFileError(f"block_configs has {len(blocks)} layers, but num_hidden_layers is {depth}")
    for number, block in enumerate(blocks):
        attention = block.get("attention") if isinstance(block, dict) else None
        if not isinstance(attention, dict):
            raise ModelFileError(f"block_configs[{number}].attention is missing")
        if attention.get("no_op") or attention.get("replace_with_linear"):
            kinds.append(LayerKind.NONE)
            continue
        one = Values(attention, {}, {})
        if window := one.whole("window_length", default=0):
            raise ModelFileError(f"block_configs[{number}].attention.window_length is {window}: not known here")
        kinds.append(LayerKind.FULL)
        heads = query_heads(values) // one.positive("n_heads_in_group")
        found.append(FullGqa(1, heads, head_dim(values)))
    return Attention(tuple(kinds), tuple(found))


def _caveats(values: Values, layers: Sequence[AttentionLayers]) -> tuple[str, ...]:
    stated = values.text("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
    if not stated and any(isinstance(one, _IN_MODEL_DTYPE) for one in layers):
        return ("the recurrent state is counted in fp32; vLLM keeps it in the model's dtype unless told otherwise",)
    return ()
