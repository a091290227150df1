"""Which kind of attention each layer of a config.json has: from a list of layers, a pattern, or the family's rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.values import Values

__all__ = ["LayerKind", "layer_kinds", "window_of"]


class LayerKind(Enum):
    """What one layer does with the past."""

    FULL = "full attention"
    SLIDING = "sliding window"
    CHUNKED = "chunked local attention"
    LINEAR = "linear attention"
    MAMBA = "Mamba"
    CONVOLUTION = "short convolution"
    PARALLEL = "attention beside Mamba"
    NONE = "no attention"


_NAMES = {
    LayerKind.FULL: "full_attention attention full global * deepseek_sparse_attention sparse_attention mla "
    "indexed_attention minimax_m3_sparse compressed_sparse_attention heavily_compressed_attention",
    LayerKind.SLIDING: "sliding_attention sliding sliding_window local_attention local swa",
    LayerKind.CHUNKED: "chunked_attention chunked",
    LayerKind.LINEAR: "linear_attention linear kda gdn gated_deltanet lightning_attention",
    LayerKind.MAMBA: "mamba mamba2 m",
    LayerKind.CONVOLUTION: "conv short_conv",
    LayerKind.PARALLEL: "hybrid hybrid_mamba parallel_hybrid",
    LayerKind.NONE: "moe mlp - e no_op none",
}
_BY_NAME = {name: kind for kind, names in _NAMES.items() for name in names.split()}

_EVERY = {
    "gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gemma3n_text": 5, "gemma4_text": 6, "cohere2": 4, "gpt_oss": 2,
    "exaone4": 4, "exaone_moe": 4, "olmo3": 4, "vaultgemma": 2,
}  # fmt: skip
"""Every how many layers one has full attention, where the config leaves it to the family."""


def window_of(values: Values) -> int:
    """Tokens that sliding layers keep; 0 when none does."""
    if values.get("use_sliding_window") is False:
        return 0
    return values.whole("sliding_window", "sliding_window_size", "interleaved_sliding_window", default=0)


def layer_kinds(values: Values, depth: int) -> tuple[LayerKind, ...]:
    """The kind of each of `depth` layers. Raises ModelFileError naming the key whose list doesn't fit."""
    for rule in _RULES:
        found = rule(values, depth)
        if found is not None:
            return found
    return (LayerKind.FULL,) * depth


def _from_list(values: Values, depth: int) -> tuple[LayerKind, ...] | None:
    for key in ("layer_types", "layers_block_type"):
        if listed := values.listed(key):
            return _kinds(key, listed, depth)
    pattern = values.text("hybrid_override_pattern")
    return _kinds("hybrid_override_pattern", pattern, depth) if pattern else None


def _kinds(key: str, names: Iterable[object], depth: int) -> tuple[LayerKind, ...]:
    kinds = []
    for name in names:
        kind = _BY_NAME.get(str(name).casefold())
        if kind is None:
            raise ModelFileError(f"{key} names a kind of layer that is not known: {str(name)[:40]!r}")
        kinds.append(kind)
    return _cut(key, kinds, depth)


def _cut(key: str, kinds: list[LayerKind], depth: int) -> tuple[LayerKind, ...]:
    """Lists may go on with the layers of a drafting head; a shorter one contradicts `num_hidden_layers`."""
    if len(kinds) < depth:
        raise ModelFileError(f"{key} has {len(kinds)} layers, but num_hidden_layers is {depth}")
    return tuple(kinds[:depth])


def _from_numbers(values: Values, depth: int) -> tuple[LayerKind, ...] | None:
    """Lists of 0 and 1 whose meaning is the family's."""
    for key, zero, one in (
        ("attn_type_list", LayerKind.LINEAR, LayerKind.FULL),
        ("hybrid_layer_pattern", LayerKind.FULL, LayerKind.SLIDING),
    ):
        if listed := values.listed(key):
            return _cut(key, [one if number else zero for number in listed], depth)
    if values.get("attention_chunk_size") and (rotary := values.listed("no_rope_layers")):
        return _cut("no_rope_layers", [LayerKind.CHUNKED if one else LayerKind.FULL for one in rotary], depth)
    return None


def _from_indices(values: Values, depth: int) -> tuple[LayerKind, ...] | None:
    """Lists of the layers that have attention, the others being something else."""
    if listed := values.numbers("linear_attn_config.full_attn_layers"):
        return _chosen([number - 1 for number in listed], depth, LayerKind.LINEAR)
    if listed := values.numbers("full_attn_idxs"):
        return _chosen(listed, depth, LayerKind.CONVOLUTION)
    if listed := values.numbers("attn_layer_indices"):
        return _chosen(listed, depth, LayerKind.MAMBA)
    if listed := values.numbers("hybrid_layer_ids"):
        return tuple(LayerKind.PARALLEL if layer in set(listed) else LayerKind.MAMBA for layer in range(depth))
    return None


def _chosen(full: Sequence[int], depth: int, other: LayerKind) -> tuple[LayerKind, ...]:
    chosen = set(full)
    return tuple(LayerKind.FULL if layer in chosen else other for layer in range(depth))


def _from_interval(values: Values, depth: int) -> tuple[LayerKind, ...] | None:
    if values.get("linear_num_value_heads") and (every := values.whole("full_attention_interval", default=4)):
        return _every(depth, every, LayerKind.LINEAR)
    if period := values.whole("attn_layer_period", default=0):
        offset = values.whole("attn_layer_offset", default=0)
        return tuple(LayerKind.FULL if n % period == offset else LayerKind.MAMBA for n in range(depth))
    if group := values.whole("layer_group_size", default=0):
        rest = depth // group * group  # what doesn't fill a group has full attention
        kinds = _every(depth, group, LayerKind.LINEAR)
        return kinds[:rest] + (LayerKind.FULL,) * (depth - rest)
    if values.get("attention_chunk_size") and values.text("model_type").startswith("llama4"):
        return _every(depth, values.positive("no_rope_layer_interval", default=4), LayerKind.CHUNKED)
    return None


def _every(depth: int, interval: int, other: LayerKind) -> tuple[LayerKind, ...]:
    return tuple(LayerKind.FULL if (n + 1) % interval == 0 else other for n in range(depth))


def _mamba_family(values: Values, depth: int) -> tuple[LayerKind, ...] | None:
    family = values.text("model_type")
    if family in ("falcon_h1", "hymba"):
        return (LayerKind.PARALLEL,) * depth
    return (LayerKind.MAMBA,) * depth if family in ("mamba", "mamba2", "falcon_mamba") else None


def _sliding(values: Values, depth: int) -> tuple[LayerKind, ...] | None:
    window = window_of(values)
    if not window:
        return None
    pattern = values.get("sliding_window_pattern", "_sliding_window_pattern", "interleaved_sliding_window_pattern")
    if isinstance(pattern, str) and pattern:
        names = [LayerKind.FULL if letter in "Gg" else LayerKind.SLIDING for letter in pattern]
        return tuple(names[layer % len(names)] for layer in range(depth))
    family = values.text("model_type")
    if isinstance(pattern, int) and pattern > 0:
        return _every(depth, pattern, LayerKind.SLIDING)
    if family in _EVERY:
        return _every(depth, _EVERY[family], LayerKind.SLIDING)
    first = values.whole("max_window_layers", default=0) if values.flag("use_sliding_window") else 0
    return tuple(LayerKind.SLIDING if layer >= first else LayerKind.FULL for layer in range(depth))


_RULES: tuple[Callable[[Values, int], tuple[LayerKind, ...] | None], ...] = (
    _from_list, _from_numbers, _from_indices, _from_interval, _mamba_family, _sliding,
)  # fmt: skip
"""The most explicit first."""
