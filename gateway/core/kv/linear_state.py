"""Further layers that keep a state of fixed size per sequence: Mamba-1, lightning attention, short convolutions.

The state is counted in fp32, as llama.cpp and SGLang keep it; vLLM keeps it in the model's own dtype unless the model
asks for more, so these figures are never too small.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.layers import split_over_ranks
from gateway.core.kv.shape import KvShape

__all__ = ["LightningAttention", "Mamba1", "ShortConvolution"]


@dataclass(frozen=True, slots=True)
class Mamba1:
    """Mamba-1 (Jamba, Falcon Mamba): `inner` channels with `state` elements each, and the convolution's tail."""

    layers: int
    inner: int
    state: int
    conv_kernel: int = 4
    conv_element_bytes: int = 2
    state_element_bytes: int = 4

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:  # noqa: ARG002 - fp32 whatever the KV dtype
        """`layers * [inner*state*4 + inner*(conv-1)*2]`, split by channels."""
        inner = split_over_ranks(self.inner, tp)
        tail = inner * (self.conv_kernel - 1) * self.conv_element_bytes
        return KvShape(state_bytes=self.layers * (inner * self.state * self.state_element_bytes + tail))


@dataclass(frozen=True, slots=True)
class LightningAttention:
    """Lightning attention (MiniMax-Text-01, MiniMax-M1): one outer product a head, no convolution."""

    layers: int
    heads: int
    head_dim: int
    state_element_bytes: int = 4

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:  # noqa: ARG002 - fp32 whatever the KV dtype
        """`layers * heads*dim*dim*4`, split by heads."""
        state = split_over_ranks(self.heads, tp) * self.head_dim**2 * self.state_element_bytes
        return KvShape(state_bytes=self.layers * state)


@dataclass(frozen=True, slots=True)
class ShortConvolution:
    """Gated short convolutions (LFM2): the last `conv_kernel - 1` inputs of `channels` channels."""

    layers: int
    channels: int
    conv_kernel: int
    conv_element_bytes: int = 2

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:  # noqa: ARG002 - in the model's dtype
        """`layers * channels*(conv-1)*2`, split by channels."""
        tail = split_over_ranks(self.channels, tp) * (self.conv_kernel - 1) * self.conv_element_bytes
        return KvShape(state_bytes=self.layers * tail)
