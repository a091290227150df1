"""How many weights a config.json describes, and which of them are read for one token."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.kv.grouped import ChunkedLocalGqa, FullGqa, SlidingGqa
from gateway.core.kv.hf_config.attention import HIDDEN, Attention, query_heads
from gateway.core.kv.hf_config.experts import feed_forward, sparse_layers
from gateway.core.kv.hf_config.nesting import depth_of
from gateway.core.kv.hf_config.sharing import shared_blocks, tied_by_family
from gateway.core.kv.latent import Mla, SlidingMla
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.linear_state import LightningAttention, Mamba1, ShortConvolution
from gateway.core.kv.recurrent import GatedDeltaNet, Kda, Mamba2
from gateway.core.kv.values import Values

__all__ = ["VOCABULARY", "Weights", "weights_of"]

VOCABULARY = ("vocab_size", "padded_vocab_size", "n_vocab")


_UNFED = frozenset(("mamba", "mamba2", "falcon_mamba", "zamba", "zamba2"))
"""Families whose layers have no feed-forward of their own."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Numbers of weights: `total`; `read` for one token (no input table, only the chosen experts); `embedding` tables
    (input and output); `routed` ones of all experts; the sizes of the mixture.
    """

    total: float
    read: float
    embedding: float
    routed: float
    experts: int
    per_token: int


def weights_of(values: Values, attention: Attention) -> Weights:
    """Count the weights matrix by matrix; norms and biases, under a thousandth, are left out.

    Raises ModelFileError naming the key that is missing.
    """
    hidden, vocabulary = values.positive(*HIDDEN), values.whole(*VOCABULARY, default=0)
    depth = depth_of(values)
    shared, uses = shared_blocks(values, attention.kinds)
    plain = [layer for layer in attention.layers if not uses or not isinstance(layer, FullGqa)]
    mixers = sum(_mixer(values, layer, hidden) for layer in plain) + _block_feed_forward(values, hidden)
    fed = feed_forward(values, _fed_layers(values, depth))
    table = float(hidden * vocabulary)
    tied = values.flag("tie_word_embeddings", tied_by_family(values))
    per_layer = float(values.whole("vocab_size_per_layer_input", default=0)) * depth
    per_layer *= values.whole("hidden_size_per_layer_input", default=0)
    total = mixers + shared + fed.dense + fed.routed + table * (1 if tied else 2) + per_layer
    share = fed.per_token / fed.experts if fed.experts > fed.per_token > 0 else 1.0
    read = mixers + uses + fed.dense + fed.routed * share + table
    return Weights(total, read, table * (1 if tied else 2) + per_layer, fed.routed, fed.experts, fed.per_token)


def _fed_layers(values: Values, depth: int) -> tuple[bool | None, ...]:
    """Which layers have a feed-forward: all, or with Nemotron's patterns only those that are nothing else."""
    if values.text("model_type") == "nemotron_h":
        names = values.listed("layers_block_type") or list(values.text("hybrid_override_pattern"))
        return tuple({"E": True, "moe": True, "-": False, "mlp": False}.get(name) for name in names[:depth])
    if values.text("model_type") in _UNFED or values.listed("block_configs"):
        return (None,) * depth
    return sparse_layers(values, depth)


def _block_feed_forward(values: Values, hidden: int) -> float:
    """Weights of feed-forwards whose width a search chose layer by layer (Llama-Nemotron)."""
    found = 0.0
    for block in values.listed("block_configs") or ():
        fed = block.get("ffn")
        factor = fed.get("ffn_mult") if isinstance(fed, dict) and not fed.get("no_op") else None
        if isinstance(factor, int | float):
            found += 3.0 * hidden * -(-int(2 * factor * hidden / 3) // 256) * 256
    return found


def _mixer(values: Values, layers: AttentionLayers, hidden: int) -> float:
    """Weights of the attention, or what stands in its place, of these layers."""
    match layers:
        case FullGqa() | SlidingGqa() | ChunkedLocalGqa():
            asking = _query_heads(values, layers)
            queries = asking * layers.head_dim
            gate = 2 if values.flag("attn_output_gate") or values.flag("attention_output_gate") else 1
            value_dim = layers.head_dim if layers.head_dim_v is None else layers.head_dim_v
            cached = layers.kv_heads * (layers.head_dim + value_dim)
            shared = values.stated("share_q_dim", default=0)  # Step3 projects queries through a narrow layer
            asked = hidden * shared + shared * queries if shared else hidden * queries
            each = asked * gate + hidden * cached + asking * value_dim * hidden
        case Mla():
            each = _latent(values, layers, hidden)
        case SlidingMla():
            each = _compressed(values, hidden)
        case GatedDeltaNet():
            keys, inner = 2 * layers.k_heads * layers.k_dim, layers.v_heads * layers.v_dim
            each = (
                hidden * (keys + 2 * inner + 2 * layers.v_heads) + inner * hidden + (keys + inner) * layers.conv_kernel
            )
        case Kda():
            inner = layers.heads * layers.head_dim
            gates = 2 * (hidden + inner) * layers.head_dim
            if values.flag("linear_attn_config.use_full_rank_gate"):
                gates = (hidden + inner) * layers.head_dim + hidden * inner
            each = 4 * hidden * inner + gates + hidden * layers.heads + 3 * inner * layers.conv_kernel
        case LightningAttention():
            each = 5 * hidden * layers.heads * layers.head_dim
        case Mamba2():
            inner = layers.heads * layers.head_dim
            each = hidden * (2 * inner + 2 * layers.groups * layers.state + layers.heads) + inner * hidden
        case Mamba1():
            rank = values.get("mamba_dt_rank", "time_step_rank")
            steps = rank if isinstance(rank, int) and not isinstance(rank, bool) else -(-hidden // 16)
            each = 3 * hidden * layers.inner + layers.inner * (2 * steps + 2 * layers.state + layers.conv_kernel)
            each += layers.inner * layers.state
        case ShortConvolution():
            each = 4 * hidden * layers.channels
        case _:
            return _other(values, layers, hidden)
    return float(layers.layers * each)


def _query_heads(values: Values, layers: AttentionLayers) -> int:
    """Query heads of such layers: Step-3.5 and MiMo have more of them where the window slides."""
    if isinstance(layers, SlidingGqa):
        own = ("swa_num_attention_heads", "attention_other_setting.num_attention_heads")
        return values.stated(*own, default=query_heads(values))
    return query_heads(values)


def _latent(values: Values, layers: Mla, hidden: int) -> int:
    heads, rank = query_heads(values), values.whole("q_lora_rank", default=0)
    plain, narrow = values.stated("qk_nope_head_dim", default=128), values.stated("v_head_dim", default=128)
    queries = heads * (plain + layers.rope_dim)
    down = hidden * rank + rank * queries if rank else hidden * queries
    gate = hidden * heads * narrow if values.flag("mla_use_output_gate") else 0
    up = layers.kv_lora_rank * heads * (plain + narrow)
    return down + hidden * (layers.kv_lora_rank + layers.rope_dim) + up + heads * narrow * hidden + gate


def _compressed(values: Values, hidden: int) -> int:
    """DeepSeek V4: low-rank queries, one shared head of keys, and an output projected in groups."""
    heads, wide, rank = query_heads(values), values.positive("head_dim"), values.positive("q_lora_rank")
    groups, low = values.positive("o_groups", default=8), values.positive("o_lora_rank", default=1024)
    return hidden * rank + rank * heads * wide + hidden * wide + heads * wide * low + groups * low * hidden


def _other(values: Values, layers: AttentionLayers, hidden: int) -> float:
    """Layers that share another's cache still have queries; encoders have plain attention; an index has its own."""
    name = type(layers).__name__
    if name == "KvShared":
        return float(layers.layers * 2 * hidden * query_heads(values) * values.whole("head_dim", default=256))
    if name == "EncoderOnly":
        return float(layers.layers * 4 * hidden * hidden)
    if name == "DsaIndexer" and values.get("q_lora_rank") is not None:
        heads, wide = values.whole("index_n_heads", default=0), values.whole("index_head_dim", default=0)
        return float(layers.layers * (values.whole("q_lora_rank") * heads * wide + hidden * (wide + heads)))
    return 0.0
