"""From a model's layers to what each of them stores on one rank, with the arithmetic spelt out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gateway.core.kv.deployment import Deployment
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.grouped import ChunkedLocalGqa, FullGqa, SlidingGqa
from gateway.core.kv.latent import CompressedMla, CompressorState, DsaIndexer, Mla, SlidingMla
from gateway.core.kv.layer_spec import Kind, LayerSpec
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.linear_specs import linear_spec
from gateway.core.kv.linear_state import LightningAttention, Mamba1, ShortConvolution
from gateway.core.kv.model import ModelShape
from gateway.core.kv.recurrent import GatedDeltaNet, Kda, Mamba2

__all__ = ["layer_specs"]

_Recurrent = GatedDeltaNet | Mamba2 | Kda


def layer_specs(
    model: ModelShape, deployment: Deployment, *, drafts_in_convolution: bool = False
) -> tuple[LayerSpec, ...]:
    """Every kind of layer of `model` that stores something, drafting layers included where they run.

    `drafts_in_convolution`: the engine keeps the inputs of proposed tokens in the convolution's tail (vLLM).
    Raises ValueError if the layout of the model is not known.
    """
    if not model.kv_known:
        raise ValueError(f"the KV layout of {model.id} is not known: give its bytes per token")
    longer = deployment.draft_tokens if drafts_in_convolution else 0
    specs = tuple(spec for layers in model.layers for spec in _specs(layers, deployment, longer))
    drafting = model.draft_layers if deployment.draft_tokens else 0
    return _with_drafting(specs, drafting) if drafting else specs


def _with_drafting(specs: tuple[LayerSpec, ...], drafting: int) -> tuple[LayerSpec, ...]:
    """A drafting head caches like the plain layers of its model: full or latent attention, else latent windows."""
    plain = [at for at, spec in enumerate(specs) if spec.name in ("full attention", "latent attention")]
    plain = plain or [at for at, spec in enumerate(specs) if spec.name == "sliding latent window"]
    if not plain:
        return specs
    at = plain[0]
    return (*specs[:at], replace(specs[at], layers=specs[at].layers + drafting), *specs[at + 1 :])


def _specs(layers: AttentionLayers, deployment: Deployment, longer: int) -> Iterator[LayerSpec]:
    match layers:
        case FullGqa() | SlidingGqa() | ChunkedLocalGqa():
            yield _grouped(layers, deployment)
        case Mla() | DsaIndexer() | CompressedMla():
            yield _latent(layers, deployment.kv_dtype)
        case SlidingMla() | CompressorState():
            yield _latent_window(layers, deployment.kv_dtype)
        case GatedDeltaNet() | Mamba2() | Kda():
            grown = replace(
                layers,
                conv_kernel=layers.conv_kernel + longer,
                state_element_bytes=deployment.state_element_bytes,
            )
            yield _recurrent(grown, deployment.tensor_parallel)
        case Mamba1() | LightningAttention():
            sized = replace(layers, state_element_bytes=deployment.state_element_bytes)
            yield linear_spec(sized, deployment.tensor_parallel)
        case ShortConvolution():
            yield linear_spec(layers, deployment.tensor_parallel)


def _grouped(layers: FullGqa | SlidingGqa | ChunkedLocalGqa, deployment: Deployment) -> LayerSpec:
    heads = -(-layers.kv_heads // deployment.tensor_parallel)
    wide = layers.head_dim
    narrow = layers.head_dim if layers.head_dim_v is None else layers.head_dim_v
    keys, values = deployment.kv_dtype, deployment.value_dtype or deployment.kv_dtype
    row = heads * (wide * keys.element_bytes + narrow * values.element_bytes)
    formula = f"{heads} heads x ({wide} + {narrow}) x {keys.element_bytes:g} B"
    if keys is not values:
        formula = f"{heads} heads x ({wide} x {keys.element_bytes:g} B + {narrow} x {values.element_bytes:g} B)"
    match layers:
        case SlidingGqa():
            return LayerSpec(Kind.SLIDING, layers.layers, "sliding window", formula, row, window=layers.window)
        case ChunkedLocalGqa():
            return LayerSpec(Kind.CHUNKED, layers.layers, "chunked local", formula, row, window=layers.chunk)
        case _:
            return LayerSpec(Kind.GROWING, layers.layers, "full attention", formula, row)


def _latent(layers: Mla | DsaIndexer | CompressedMla, dtype: KvDtype) -> LayerSpec:
    per_token = replace(layers, layers=1).shape(dtype).bytes_per_token
    match layers:
        case Mla():
            formula = f"({layers.kv_lora_rank} + {layers.rope_dim}) x {dtype.element_bytes:g} B"
            if dtype is KvDtype.FP8 and layers.fp8_row_bytes is not None:
                formula = f"{layers.fp8_row_bytes} B a row in the sparse layout: fp8, scales and 16 bit rope"
            return LayerSpec(Kind.GROWING, layers.layers, "latent attention", formula, per_token, latent=True)
        case DsaIndexer():
            ratio, row = layers.tokens_per_entry, float(layers.bytes_per_entry)
            name, compressed = "sparse index", False
        case CompressedMla():
            ratio, row = layers.ratio, per_token * layers.ratio
            name, compressed = f"compressed latent 1:{layers.ratio}", True
    formula = f"{row:g} B per {ratio} tokens"
    return LayerSpec(
        Kind.GROWING, layers.layers, name, formula, row, tokens_per_row=ratio, latent=True, compressed=compressed
    )


def _latent_window(layers: SlidingMla | CompressorState, dtype: KvDtype) -> LayerSpec:
    match layers:
        case SlidingMla():
            row = replace(layers, layers=1).shape(dtype).window_bytes_per_token
            name, formula = "sliding latent window", f"{row:g} B a token"
        case CompressorState():
            row = float(layers.bytes_per_token)
            name, formula = f"compressor inputs of {layers.window} tokens", f"{row:g} B a token, fp32"
    return LayerSpec(
        Kind.SLIDING, layers.layers, name, formula, row, window=layers.window, latent=True, compressed=True
    )


def _recurrent(layers: _Recurrent, tp: int) -> LayerSpec:
    size = replace(layers, layers=1).shape(KvDtype.F16, tp).state_bytes // tp
    tail = f"x {layers.conv_kernel - 1} x {layers.conv_element_bytes} B"
    state = layers.state_element_bytes
    match layers:
        case GatedDeltaNet():
            keys, values = -(-layers.k_heads // tp), -(-layers.v_heads // tp)
            formula = (
                f"{values} x {layers.k_dim} x {layers.v_dim} x {state} B"
                f" + (2 x {keys} x {layers.k_dim} + {values} x {layers.v_dim}) {tail}"
            )
            name = "gated delta net"
        case Mamba2():
            inner = f"{-(-layers.heads // tp)} x {layers.head_dim}"
            groups = -(-layers.groups // tp)
            formula = f"{inner} x {layers.state} x {state} B + ({inner} + 2 x {groups} x {layers.state}) {tail}"
            name = "Mamba-2"
        case Kda():
            inner = f"{-(-layers.heads // tp)} x {layers.head_dim}"
            formula = f"{inner} x {layers.head_dim} x {state} B + 3 x {inner} {tail}"
            name = "Kimi delta attention"
    return LayerSpec(Kind.STATE, layers.layers, name, formula, state_bytes=size)
