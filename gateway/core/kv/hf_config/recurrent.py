"""Layers of a config.json that keep a state: gated delta net, KDA, lightning attention, Mamba, short convolutions."""

from __future__ import annotations

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.hf_config.kinds import LayerKind
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.linear_state import LightningAttention, Mamba1, ShortConvolution
from gateway.core.kv.recurrent import GatedDeltaNet, Kda, Mamba2
from gateway.core.kv.values import Values

__all__ = ["recurrent_layer"]

_KDA_KEYS = ("linear_attn_config.num_heads", "linear_num_heads")
_MAMBA_HEADS = ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
_MAMBA_WIDTH = ("mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim")
_STATE = ("ssm_state_size", "mamba_d_state", "state_size")
_KERNEL = ("mamba_d_conv", "conv_kernel", "d_conv")


def recurrent_layer(values: Values, kind: LayerKind) -> AttentionLayers:
    """One layer of that kind. Raises ModelFileError naming the key that is missing."""
    match kind:
        case LayerKind.LINEAR:
            return _linear(values)
        case LayerKind.MAMBA:
            return _mamba(values)
        case LayerKind.CONVOLUTION:
            kernel = values.positive("conv_L_cache")
            return ShortConvolution(1, values.positive("conv_dim", "hidden_size"), kernel)
        case _:
            raise ModelFileError(f"{kind.value} keeps no state")


def _linear(values: Values) -> AttentionLayers:
    kernel = values.positive(
        "linear_conv_kernel_dim", "linear_attn_config.short_conv_kernel_size", "short_conv_kernel_size", default=4
    )
    if values.get("linear_num_value_heads") is not None:
        return GatedDeltaNet(
            1,
            k_heads=values.positive("linear_num_key_heads"),
            v_heads=values.positive("linear_num_value_heads"),
            k_dim=values.positive("linear_key_head_dim"),
            v_dim=values.positive("linear_value_head_dim"),
            conv_kernel=kernel,
        )
    if values.get(*_KDA_KEYS) is not None:
        width = values.positive("linear_attn_config.head_dim", "linear_head_dim")
        return Kda(1, heads=values.positive(*_KDA_KEYS), head_dim=width, conv_kernel=kernel)
    heads = values.positive("num_attention_heads")
    width = values.whole("head_dim", default=0) or values.positive("hidden_size") // heads
    if values.get("kda_safe_gate") is not None or values.get("short_conv_kernel_size") is not None:
        return Kda(1, heads=heads, head_dim=width, conv_kernel=kernel)
    if values.text("model_type").startswith(("minimax", "bailing", "ling", "ring")):
        return LightningAttention(1, heads, width)
    raise ModelFileError("linear_num_value_heads is missing, though layers of linear attention are listed")


def _mamba(values: Values) -> AttentionLayers:
    state, kernel = values.positive(*_STATE), values.positive(*_KERNEL, default=4)
    hidden = values.positive("hidden_size", "d_model")
    if values.get(*_MAMBA_HEADS) is None:
        inner = values.whole("mamba_expand", "expand", default=2) * hidden
        if values.text("model_type") in ("mamba", "falcon_mamba"):
            inner = values.positive("intermediate_size", "d_inner", default=inner)
        return Mamba1(1, inner, state, kernel)
    heads = values.positive(*_MAMBA_HEADS)
    if values.get(*_MAMBA_WIDTH) not in (None, "auto"):
        width = values.positive(*_MAMBA_WIDTH)
    else:
        inner = values.whole("mamba_d_ssm", default=0) or values.whole("mamba_expand", "expand", default=2) * hidden
        width = inner // heads
    groups = values.positive("n_groups", "mamba_n_groups", "mamba_ngroups", default=1)
    return Mamba2(1, heads=heads, head_dim=width, state=state, groups=groups, conv_kernel=kernel)
