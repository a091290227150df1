"""One kind of layer as an engine's allocator sees it: bytes a row and layer on one rank, window, state."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from gateway.core.kv.deployment import Deployment
from gateway.core.kv.grouped import ChunkedLocalGqa, FullGqa, SlidingGqa
from gateway.core.kv.latent import CompressedMla, CompressorState, DsaIndexer, Mla, SlidingMla
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.model import ModelShape
from gateway.core.kv.recurrent import GatedDeltaNet, Kda, Mamba2

__all__ = ["Kind", "LayerSpec", "layer_specs"]


class Kind(Enum):
    """How long an allocator keeps what a layer wrote; the value is the words for it."""

    GROWING = "full attention"
    SLIDING = "sliding window"
    CHUNKED = "chunked local attention"
    STATE = "recurrent state"


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """`layers` layers that are stored alike. All byte counts are of one layer on one rank.

    `row_bytes`: one row; `tokens_per_row` tokens share it (compressed caches). `window`: tokens kept by SLIDING and
    CHUNKED kinds. `state_bytes`: what STATE kinds keep whatever the length. `latent`: one vector for all heads, whose
    pages can't be padded at will. `name` and `formula` say how `row_bytes` or `state_bytes` came about.
    """

    kind: Kind
    layers: int
    name: str
    formula: str
    row_bytes: float = 0.0
    tokens_per_row: int = 1
    window: int = 0
    state_bytes: int = 0
    latent: bool = False
    compressed: bool = False

    def page_bytes(self, tokens: int) -> int:
        """Bytes of a block of `tokens` tokens in one layer."""
        return math.ceil(-(-tokens // self.tokens_per_row) * self.row_bytes)


def layer_specs(model: ModelShape, deployment: Deployment) -> tuple[LayerSpec, ...]:
    """Every kind of layer of `model` that stores something, drafting layers included where they run.

    Raises ValueError if the layout of the model is not known.
    """
    if not model.kv_known:
        raise ValueError(f"the KV layout of {model.id} is not known: give its bytes per token")
    return tuple(_specs(model, deployment))


def _specs(model: ModelShape, deployment: Deployment) -> Iterator[LayerSpec]:
    drafting = model.draft_layers if deployment.draft_tokens else 0
    for layers in model.layers:
        spec = _spec(layers, deployment)
        if spec is None:
            continue
        if drafting and isinstance(layers, FullGqa | Mla):
            spec = replace(spec, layers=spec.layers + drafting)
            drafting = 0
        yield spec


def _spec(layers: AttentionLayers, deployment: Deployment) -> LayerSpec | None:
    match layers:
        case FullGqa() | SlidingGqa() | ChunkedLocalGqa():
            return _grouped(layers, deployment)
        case Mla() | DsaIndexer() | CompressedMla() | SlidingMla() | CompressorState():
            return _latent(layers, deployment)
        case GatedDeltaNet() | Mamba2() | Kda():
            return _recurrent(layers, deployment)
        case _:
            return None


def _grouped(layers: FullGqa | SlidingGqa | ChunkedLocalGqa, deployment: Deployment) -> LayerSpec:
    heads = -(-layers.kv_heads // deployment.tensor_parallel)
    wide = layers.head_dim
    narrow = layers.head_dim if layers.head_dim_v is None else layers.head_dim_v
    keys, values = deployment.kv_dtype, deployment.value_dtype or deployment.kv_dtype
    row = heads * (wide * keys.element_bytes + narrow * values.element_bytes)
    if keys is values:
        formula = f"{heads} heads x ({wide} + {narrow}) x {keys.element_bytes:g} B"
    else:
        formula = f"{heads} heads x ({wide} x {keys.element_bytes:g} B + {narrow} x {values.element_bytes:g} B)"
    match layers:
        case SlidingGqa():
            return LayerSpec(Kind.SLIDING, layers.layers, "sliding window", formula, row, window=layers.window)
        case ChunkedLocalGqa():
            return LayerSpec(Kind.CHUNKED, layers.layers, "chunked local", formula, row, window=layers.chunk)
        case _:
            return LayerSpec(Kind.GROWING, layers.layers, "full attention", formula, row)


def _latent(
    layers: Mla | DsaIndexer | CompressedMla | SlidingMla | CompressorState, deployment: Deployment
) -> LayerSpec:
    one = replace(layers, layers=1).shape(deployment.kv_dtype)
    match layers:
        case Mla():
            row = one.bytes_per_token
            formula = f"({layers.kv_lora_rank} + {layers.rope_dim}) x {deployment.kv_dtype.element_bytes:g} B"
            if row != (layers.kv_lora_rank + layers.rope_dim) * deployment.kv_dtype.element_bytes:
                formula = f"{row:g} B a row in the fp8 sparse layout"
            return LayerSpec(Kind.GROWING, layers.layers, "latent attention", formula, row, latent=True)
        case DsaIndexer():
            row = float(layers.bytes_per_entry)
            formula = f"{layers.bytes_per_entry} B per {layers.tokens_per_entry} tokens, 8 bit"
            return LayerSpec(
                Kind.GROWING, layers.layers, "sparse index", formula, row, layers.tokens_per_entry, latent=True
            )
        case CompressedMla():
            row = one.bytes_per_token * layers.ratio
            formula = f"{row:g} B per {layers.ratio} tokens"
            return LayerSpec(
                Kind.GROWING,
                layers.layers,
                f"compressed latent 1:{layers.ratio}",
                formula,
                row,
                layers.ratio,
                latent=True,
                compressed=True,
            )
        case SlidingMla():
            row = one.window_bytes_per_token
            return LayerSpec(
                Kind.SLIDING,
                layers.layers,
                "sliding latent window",
                f"{row:g} B a row",
                row,
                window=layers.window,
                latent=True,
                compressed=True,
            )
        case CompressorState():
            return LayerSpec(
                Kind.SLIDING,
                layers.layers,
                f"compressor inputs of {layers.window} tokens",
                f"{layers.bytes_per_token} B a token, fp32",
                float(layers.bytes_per_token),
                window=layers.window,
                latent=True,
                compressed=True,
            )


def _recurrent(layers: GatedDeltaNet | Mamba2 | Kda, deployment: Deployment) -> LayerSpec:
    # Speculation keeps the convolution's inputs of the proposed tokens too.
    longer = replace(layers, layers=1, conv_kernel=layers.conv_kernel + deployment.draft_tokens)
    tp = deployment.tensor_parallel
    size = longer.shape(deployment.kv_dtype, tp).state_bytes // tp
    name = {GatedDeltaNet: "gated delta net", Mamba2: "Mamba-2", Kda: "Kimi delta attention"}[type(layers)]
    return LayerSpec(Kind.STATE, layers.layers, name, f"fp32 state and convolution tail = {size} B", state_bytes=size)
