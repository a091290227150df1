"""What layers with a small fixed state store on one rank: Mamba-1, lightning attention, short convolutions."""

from __future__ import annotations

from dataclasses import replace

from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.layer_spec import Kind, LayerSpec
from gateway.core.kv.linear_state import LightningAttention, Mamba1, ShortConvolution

__all__ = ["linear_spec"]


def linear_spec(layers: Mamba1 | LightningAttention | ShortConvolution, tp: int) -> LayerSpec:
    """Their state on one of `tp` ranks, with the arithmetic spelt out."""
    size = replace(layers, layers=1).shape(KvDtype.F16, tp).state_bytes // tp
    match layers:
        case Mamba1():
            inner = -(-layers.inner // tp)
            tail = f"{inner} x {layers.conv_kernel - 1} x {layers.conv_element_bytes} B"
            formula = f"{inner} x {layers.state} x {layers.state_element_bytes} B + {tail}"
            name = "Mamba-1"
        case LightningAttention():
            heads = -(-layers.heads // tp)
            formula = f"{heads} x {layers.head_dim} x {layers.head_dim} x {layers.state_element_bytes} B"
            name = "lightning attention"
        case ShortConvolution():
            formula = f"{-(-layers.channels // tp)} x {layers.conv_kernel - 1} x {layers.conv_element_bytes} B"
            name = "short convolution"
    return LayerSpec(Kind.STATE, layers.layers, name, formula, state_bytes=size)
