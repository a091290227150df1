"""Attention layers as an entry of the model catalogue writes them: one mapping for each kind of layer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.sizes import Whole
from gateway.config.spec import Spec

__all__ = ["AttentionSpec"]

Size = Annotated[Whole, Field(gt=0)]


class _Layers(Spec):
    layers: Size
    """How many layers of this kind the model has."""
    note: str | None = None
    """Anything worth knowing; not read."""


class FullGqaSpec(_Layers):
    """Grouped, multi-head or multi-query attention over the whole context."""

    kind: Literal["full_gqa"]
    """Tells this kind of layer from others."""
    kv_heads: Size
    """Heads that are cached (num_key_value_heads)."""
    head_dim: Size
    """Elements of a key; not always hidden size over heads."""
    head_dim_v: Size | None = None
    """Elements of a value, where it differs from a key."""


class _WindowSpec(_Layers):
    kv_heads: Size
    """Heads that are cached (num_key_value_heads)."""
    head_dim: Size
    """Elements of a key."""
    head_dim_v: Size | None = None
    """Elements of a value, where it differs from a key."""
    window: Size
    """Tokens that stay cached."""
    bytes_per_token_fp16_within_window: Whole | None = None
    """The product, for readers; not read."""


class SlidingGqaSpec(_WindowSpec):
    """Attention over the last `window` tokens."""

    kind: Literal["sliding_gqa"]
    """Tells this kind of layer from others."""


class ChunkedLocalGqaSpec(_WindowSpec):
    """Attention within chunks of `window` tokens (Llama 4)."""

    kind: Literal["chunked_local_gqa"]
    """Tells this kind of layer from others."""


class KvSharedSpec(_Layers):
    """Layers that read another layer's cache and keep none."""

    kind: Literal["kv_shared"]
    """Tells this kind of layer from others."""


class MlaSpec(_Layers):
    """Multi-head latent attention: one compressed vector a token."""

    kind: Literal["mla"]
    """Tells this kind of layer from others."""
    kv_lora_rank: Size
    """Elements of the latent."""
    rope_dim: Size
    """Elements of the rotary part (qk_rope_head_dim)."""
    fp8_row_bytes: Size | None = None
    """Bytes of a row in the sparse 8-bit layout, where the engine uses one."""


class DsaIndexerSpec(_Layers):
    """Index keys of sparse attention."""

    kind: Literal["dsa_indexer"]
    """Tells this kind of layer from others."""
    bytes_per_entry: Size | None = None
    """Bytes of one index key with its scale."""
    tokens_per_entry: Size | None = None
    """Tokens that share one."""


class CompressedMlaSpec(_Layers):
    """One latent row for `ratio` tokens."""

    kind: Literal["compressed_mla"]
    """Tells this kind of layer from others."""
    ratio: Size
    """Tokens a row."""
    row_bytes_bf16: Size | None = None
    """Bytes of a row in 16 bit."""
    row_bytes_fp8: Size | None = None
    """Bytes of a row in 8 bit."""


class SlidingMlaSpec(_Layers):
    """Uncompressed latent rows of the last `window` tokens."""

    kind: Literal["sliding_mla"]
    """Tells this kind of layer from others."""
    window: Size
    """Tokens that stay cached."""
    row_bytes_bf16: Size | None = None
    """Bytes of a row in 16 bit."""
    row_bytes_fp8: Size | None = None
    """Bytes of a row in 8 bit."""


class CompressorStateSpec(_Layers):
    """What a compressor still has to fold."""

    kind: Literal["compressor_state"]
    """Tells this kind of layer from others."""
    window: Size
    """Tokens held."""
    bytes_per_token: Size
    """Bytes of one of them."""


class _StateSpec(_Layers):
    conv_kernel: Size | None = None
    """Width of the convolution (4 where left out)."""
    state_dtype: str | None = None
    """For readers: engines keep the state in 32 bit."""
    conv_dtype: str | None = None
    """For readers."""
    bytes_per_layer: Whole | None = None
    """The product, for readers; not read."""


class GatedDeltaNetSpec(_StateSpec):
    """Gated delta net: a state of fixed size a sequence."""

    kind: Literal["gated_delta_net"]
    """Tells this kind of layer from others."""
    k_heads: Size
    """Key heads (linear_num_key_heads)."""
    v_heads: Size
    """Value heads (linear_num_value_heads)."""
    k_dim: Size
    """Elements of a key (linear_key_head_dim)."""
    v_dim: Size
    """Elements of a value (linear_value_head_dim)."""


class Mamba2Spec(_StateSpec):
    """Mamba-2: a state of fixed size a sequence."""

    kind: Literal["mamba2"]
    """Tells this kind of layer from others."""
    heads: Size
    """Heads (mamba_num_heads)."""
    head_dim: Size
    """Elements of a head."""
    state: Size
    """Elements of the state (ssm_state_size)."""
    groups: Size
    """Groups (n_groups)."""


class KdaSpec(_StateSpec):
    """Kimi delta attention: a state of fixed size a sequence."""

    kind: Literal["kda"]
    """Tells this kind of layer from others."""
    heads: Size
    """Heads."""
    head_dim: Size
    """Elements of a head."""


class EncoderOnlySpec(_Layers):
    """Layers of an encoder, which keep nothing between requests."""

    kind: Literal["encoder_only"]
    """Tells this kind of layer from others."""


AttentionSpec = Annotated[
    FullGqaSpec
    | SlidingGqaSpec
    | ChunkedLocalGqaSpec
    | KvSharedSpec
    | MlaSpec
    | DsaIndexerSpec
    | CompressedMlaSpec
    | SlidingMlaSpec
    | CompressorStateSpec
    | GatedDeltaNetSpec
    | Mamba2Spec
    | KdaSpec
    | EncoderOnlySpec,
    Field(discriminator="kind"),
]
"""Layers of one kind, told apart by `kind`."""
