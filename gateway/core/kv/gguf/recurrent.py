"""Which layers of a GGUF model keep a state, and how large: llama.cpp's rules (llama-hparams.cpp, b11434)."""

from __future__ import annotations

from gateway.core.kv.gguf.keys import GgufKeys
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.linear_state import LightningAttention, Mamba1, ShortConvolution
from gateway.core.kv.recurrent import GatedDeltaNet, Kda, Mamba2

__all__ = ["BESIDE_ATTENTION", "recurrent_layers", "state_layers"]

_DELTA_NETS = frozenset(("qwen3next", "qwen35", "qwen35moe", "qwen4exp"))
_KDA = frozenset(("kimi-linear", "kimi-k3", "glm5-next", "bailingmoe3"))
_WITHOUT_HEADS = _KDA | {"granitehybrid", "jamba", "plamo2", "lfm2", "lfm2moe"}
"""A layer without KV heads keeps a state in these."""
_NEMOTRON = frozenset(("nemotron_h", "nemotron_h_moe"))
_RWKV = frozenset(("rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"))
_ONLY_STATES = _RWKV | {"mamba", "mamba2"}
BESIDE_ATTENTION = frozenset(("falcon-h1",))
"""Every layer has attention and a state beside it."""


def recurrent_layers(keys: GgufKeys, heads: tuple[int, ...]) -> tuple[bool, ...]:
    """Whether each layer keeps a state; `heads`: the KV heads of each."""
    layers = len(heads)
    if keys.arch in _ONLY_STATES or keys.arch in BESIDE_ATTENTION:
        return (True,) * layers
    if keys.arch in _WITHOUT_HEADS:
        return tuple(one == 0 for one in heads)
    if keys.arch in _NEMOTRON:
        widths = keys.each(("feed_forward_length",), layers, default=0)
        return tuple(one == 0 and width == 0 for one, width in zip(heads, widths, strict=True))
    if keys.arch in _DELTA_NETS or keys.arch == "minimax-01":
        listed = keys.flags("attention.recurrent_layers", layers)
        if listed is not None:
            return listed
        every = keys.positive("full_attention_interval", default=8 if keys.arch == "minimax-01" else 4)
        return tuple((layer + 1) % every != 0 for layer in range(layers))
    return (False,) * layers


def state_layers(keys: GgufKeys) -> tuple[AttentionLayers, ...]:
    """What one layer with a state keeps. Raises ModelFileError naming the key that is missing."""
    if keys.arch in _KDA:
        heads = max(keys.each(("attention.head_count",), keys.positive("block_count")))
        return (Kda(1, heads, keys.positive("kda.head_dim"), keys.positive("ssm.conv_kernel", default=4)),)
    if keys.arch in ("lfm2", "lfm2moe"):
        return (ShortConvolution(1, keys.positive("embedding_length"), keys.positive("shortconv.l_cache")),)
    if keys.arch == "minimax-01":
        width = keys.positive("attention.key_length")
        return (LightningAttention(1, keys.largest("attention.head_count"), width),)
    if keys.arch in _RWKV:
        width, wide = keys.positive("embedding_length"), keys.positive("wkv.head_size")
        shifted = keys.positive("token_shift_count", default=2)
        return (LightningAttention(1, width // wide, wide), ShortConvolution(1, width, shifted + 1, 4))
    inner, state = keys.positive("ssm.inner_size"), keys.positive("ssm.state_size")
    kernel, groups = keys.positive("ssm.conv_kernel"), keys.whole("ssm.group_count", default=0)
    steps = keys.positive("ssm.time_step_rank")
    if keys.arch in _DELTA_NETS:
        return (GatedDeltaNet(1, groups, steps, state, inner // steps, kernel),)
    if not groups:  # Mamba-1 has no groups; there the rank is of the time step
        return (Mamba1(1, inner, state, kernel),)
    return (Mamba2(1, steps, inner // steps, state, groups, kernel),)
