"""Layers that keep a state of fixed size per sequence in place of a cache: gated delta net, Mamba-2, KDA.

The state is an outer product (k_dim * v_dim per head) in fp32 whatever the KV dtype, unless the engine is told
otherwise (`state_element_bytes=2`); only the convolution tail follows the model dtype (llama.cpp keeps that in fp32
too: `conv_element_bytes=4`).
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.layers import split_over_ranks
from gateway.core.kv.shape import KvShape

__all__ = ["GatedDeltaNet", "Kda", "Mamba2"]


@dataclass(frozen=True, slots=True)
class GatedDeltaNet:
    """Gated delta net (Qwen3-Next, Qwen3.5 and later hybrids)."""

    layers: int
    k_heads: int
    v_heads: int
    k_dim: int
    v_dim: int
    conv_kernel: int = 4
    conv_element_bytes: int = 2
    state_element_bytes: int = 4

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:  # noqa: ARG002 - fp32 whatever the KV dtype
        """`layers * [v_heads*k_dim*v_dim*4 + (2*k_heads*k_dim + v_heads*v_dim)*(conv-1)*2]`, split by heads."""
        v_heads = split_over_ranks(self.v_heads, tp)
        k_heads = split_over_ranks(self.k_heads, tp)
        state = v_heads * self.k_dim * self.v_dim * self.state_element_bytes
        channels = 2 * k_heads * self.k_dim + v_heads * self.v_dim
        return KvShape(state_bytes=self.layers * (state + _tail(channels, self.conv_kernel, self.conv_element_bytes)))


@dataclass(frozen=True, slots=True)
class Mamba2:
    """Mamba-2 (Nemotron-H); its groups are rounded up to a multiple of the tensor-parallel size."""

    layers: int
    heads: int
    head_dim: int
    state: int
    groups: int
    conv_kernel: int = 4
    conv_element_bytes: int = 2
    state_element_bytes: int = 4

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:  # noqa: ARG002 - fp32 whatever the KV dtype
        """`layers * [heads*head_dim*state*4 + (heads*head_dim + 2*groups*state)*(conv-1)*2]`, split by heads."""
        inner = split_over_ranks(self.heads, tp) * self.head_dim
        channels = inner + 2 * split_over_ranks(self.groups, tp) * self.state
        tail = _tail(channels, self.conv_kernel, self.conv_element_bytes)
        return KvShape(state_bytes=self.layers * (inner * self.state * self.state_element_bytes + tail))


@dataclass(frozen=True, slots=True)
class Kda:
    """Kimi delta attention (Kimi Linear, Kimi K3)."""

    layers: int
    heads: int
    head_dim: int
    conv_kernel: int = 4
    conv_element_bytes: int = 2
    state_element_bytes: int = 4

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:  # noqa: ARG002 - fp32 whatever the KV dtype
        """`layers * [heads*dim*dim*4 + 3*heads*dim*(conv-1)*2]`, split by heads."""
        inner = split_over_ranks(self.heads, tp) * self.head_dim
        tail = _tail(3 * inner, self.conv_kernel, self.conv_element_bytes)
        return KvShape(state_bytes=self.layers * (inner * self.head_dim * self.state_element_bytes + tail))


def _tail(channels: int, kernel: int, element_bytes: int) -> int:
    return channels * (kernel - 1) * element_bytes
