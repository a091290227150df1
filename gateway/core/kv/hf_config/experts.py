"""Feed-forward weights of a config.json: dense, gated or not, and mixtures of experts with their layers."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.kv.hf_config.attention import HIDDEN
from gateway.core.kv.values import Values

__all__ = ["FeedForward", "feed_forward"]

EXPERTS = (
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "ffn_config.moe_num_experts",
)  # fmt: skip
PER_TOKEN = (
    "num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "top_k_experts", "moe_k",
    "ffn_config.moe_top_k",
)  # fmt: skip
_WIDTH = (
    "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "ffn_config.ffn_hidden_size", "hidden_dim", "d_ff",
)  # fmt: skip
_EXPERT_WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size", "expert_ffn_dim")
_SHARED_WIDTH = (
    "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size",
    "share_expert_dim", "shared_experts_intermediate_size",
)  # fmt: skip
_UNGATED_NAMES = """
gpt2 gpt_bigcode gptj gpt_neox gpt_neo bloom falcon mpt opt phi starcoder2 nemotron nemotron_h bert roberta
xlm-roberta xlm-roberta-xl camembert deberta deberta-v2 ernie distilbert electra mpnet albert codegen persimmon
apertus arcee biogpt xglm
"""
_UNGATED = frozenset(_UNGATED_NAMES.split())
"""Families whose feed-forward has two matrices, not three."""


@dataclass(frozen=True, slots=True)
class FeedForward:
    """Weights of all layers together: `dense` ones read for every token (shared experts and routers included), and
    `routed` ones in `experts` experts a layer, of which `per_token` are read.
    """

    dense: float
    routed: float
    experts: int
    per_token: int


def feed_forward(values: Values, sparse: tuple[bool | None, ...]) -> FeedForward:
    """Count the feed-forward weights; `sparse` is the list of layers, None where one has no feed-forward at all."""
    hidden = values.whole(*HIDDEN)
    matrices = 2 if values.text("model_type") in _UNGATED else 3
    experts, per_token = values.largest(*EXPERTS), values.largest(*PER_TOKEN)
    widths = _widths(values, hidden, len(sparse))
    width = max(widths, default=0)
    dense_widths = sum(wide for wide, one in zip(widths, sparse, strict=True) if one is False)
    own = ["intermediate_size_mlp", "dense_intermediate_size"]
    if not experts and values.text("model_type") == "granitemoehybrid":
        own = ["shared_intermediate_size"]
    if stated := values.stated(*own, default=0):
        dense_widths = stated * sum(1 for one in sparse if one is False)
    expert_width = values.largest(*_EXPERT_WIDTH) or width
    inner = values.whole("moe_latent_size", "routed_expert_hidden_size", default=hidden)
    moe = sum(1 for one in sparse if one)
    dense = float(matrices * hidden * dense_widths)
    if values.flag("enable_moe_block"):  # Gemma 4: a dense feed-forward beside the experts in every layer
        dense += float(matrices * hidden * width * moe)
    each = matrices * inner * expert_width
    dense += moe * (hidden * experts + _shared(values, matrices, hidden, expert_width))
    if inner != hidden:
        dense += moe * 2.0 * hidden * inner
    return FeedForward(dense, float(moe * experts * each), experts, per_token)


def sparse_layers(values: Values, depth: int) -> tuple[bool | None, ...]:
    """Which of `depth` layers route to experts."""
    if not values.largest(*EXPERTS) > 1:
        return (False,) * depth
    if types := values.listed("mlp_layer_types"):
        return tuple(str(kind) != "dense" for kind in types[:depth])
    frequency = values.get("moe_layer_freq")
    if isinstance(frequency, list):
        return tuple(bool(one) for one in frequency[:depth])
    if named := _numbered(values, "moe_layers_enum"):
        return tuple(layer in named for layer in range(depth))
    first = values.whole("first_k_dense_replace", "moe_layer_start_index", default=0)
    dense_only = set(values.numbers("mlp_only_layers") or ())
    every = values.whole("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", default=1) or 1
    if period := values.whole("expert_layer_period", default=0):
        offset = values.whole("expert_layer_offset", default=0)
        return tuple(layer % period == offset for layer in range(depth))
    return tuple(layer >= first and layer not in dense_only and (layer + 1) % every == 0 for layer in range(depth))


def _widths(values: Values, hidden: int, depth: int) -> tuple[int, ...]:
    """Elements between the matrices of each layer: one number, or a list as in Gemma 3n; four times the hidden size
    where nothing is stated."""
    found = values.get(*_WIDTH)
    if isinstance(found, list):
        return values.each(_WIDTH, depth)
    width = values.stated(*_WIDTH, default=4 * hidden)
    if values.text("model_type") == "qwen":  # the first Qwen counts the gate in
        width //= 2
    return (width,) * depth


def _numbered(values: Values, key: str) -> frozenset[int]:
    """Layers by number, in a list or, as Step writes it, in a text with commas."""
    found = values.get(key)
    listed = found.split(",") if isinstance(found, str) else found if isinstance(found, list) else []
    return frozenset(int(one) for one in map(str, listed) if one.strip().isdecimal())


def _shared(values: Values, matrices: int, hidden: int, expert_width: int) -> int:
    """Weights of the experts that every token passes, in one layer."""
    stated = values.whole(*_SHARED_WIDTH, default=0)
    count = values.largest("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
    if stated:
        return matrices * hidden * stated * (count or 1)
    if values.text("model_type").startswith("llama4"):
        count = 1
    return matrices * hidden * expert_width * count
