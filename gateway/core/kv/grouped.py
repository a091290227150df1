"""Attention that caches one K and one V vector per KV head: full (MHA, GQA, MQA), sliding-window, chunked, shared."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.layers import split_over_ranks
from gateway.core.kv.shape import KvShape

__all__ = ["ChunkedLocalGqa", "EncoderOnly", "FullGqa", "KvShared", "SlidingGqa"]


@dataclass(frozen=True, slots=True)
class FullGqa:
    """Full attention with grouped KV heads; `head_dim_v` only where V is narrower than K (MiMo-V2-Flash)."""

    layers: int
    kv_heads: int
    head_dim: int
    head_dim_v: int | None = None

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:
        """Grows with every token: `layers * heads * (k + v) * element`."""
        return KvShape(bytes_per_token=_row_bytes(self, dtype, tp))


@dataclass(frozen=True, slots=True)
class SlidingGqa:
    """Sliding-window attention: the same row per token, but only the last `window` tokens are alive."""

    layers: int
    kv_heads: int
    head_dim: int
    window: int
    head_dim_v: int | None = None

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:
        """Grows up to the window, then stays."""
        return KvShape(window_bytes_per_token=_row_bytes(self, dtype, tp), window=self.window)


@dataclass(frozen=True, slots=True)
class ChunkedLocalGqa:
    """Chunked local attention (Llama 4): at most one chunk of `chunk` tokens is alive."""

    layers: int
    kv_heads: int
    head_dim: int
    chunk: int
    head_dim_v: int | None = None

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:
        """Counted at its fullest, as an engine must reserve it: up to the chunk, then constant."""
        return KvShape(window_bytes_per_token=_row_bytes(self, dtype, tp), window=self.chunk)


@dataclass(frozen=True, slots=True)
class KvShared:
    """Layers that read the cache of an earlier layer (Gemma 3n, Gemma 4 E models) and keep none."""

    layers: int

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:  # noqa: ARG002 - the protocol's signature
        """Nothing: the owner layers are counted where they stand."""
        return KvShape()


@dataclass(frozen=True, slots=True)
class EncoderOnly:
    """Bidirectional encoder layers (embedding models): activations only, no cache."""

    layers: int

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:  # noqa: ARG002 - the protocol's signature
        """Nothing is kept after the forward pass."""
        return KvShape()


def _row_bytes(layers: FullGqa | SlidingGqa | ChunkedLocalGqa, dtype: KvDtype, tp: int) -> float:
    value_dim = layers.head_dim if layers.head_dim_v is None else layers.head_dim_v
    heads = split_over_ranks(layers.kv_heads, tp)
    return layers.layers * heads * (layers.head_dim + value_dim) * dtype.element_bytes
