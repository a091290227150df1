"""Attention that caches one compressed vector per token (MLA and its heirs): one head, so every rank has a copy."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.shape import KvShape

__all__ = ["CompressedMla", "CompressorState", "DsaIndexer", "Mla", "SlidingMla"]


@dataclass(frozen=True, slots=True)
class Mla:
    """Multi-head latent attention (DeepSeek V3, Kimi K2): `kv_lora_rank + rope_dim` elements, no factor 2.

    `fp8_row_bytes` is the sparse layout of V3.2 and GLM-5: 512 fp8 + 16 scale + 128 bf16 rope = 656 bytes.
    """

    layers: int
    kv_lora_rank: int
    rope_dim: int
    fp8_row_bytes: int | None = None

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:
        """Grows with every token, on every rank."""
        if dtype is KvDtype.FP8 and self.fp8_row_bytes is not None:
            row = float(self.fp8_row_bytes)
        else:
            row = (self.kv_lora_rank + self.rope_dim) * dtype.element_bytes
        return KvShape(bytes_per_token=self.layers * row * tp)


@dataclass(frozen=True, slots=True)
class DsaIndexer:
    """Index keys of sparse attention: `bytes_per_entry` (128 + 4) per `tokens_per_entry` tokens, always 8 bit."""

    layers: int
    bytes_per_entry: int = 132
    tokens_per_entry: int = 1

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:  # noqa: ARG002 - 8 bit whatever the KV dtype
        """Grows with every token, on every rank."""
        return KvShape(bytes_per_token=self.layers * self.bytes_per_entry / self.tokens_per_entry * tp)


@dataclass(frozen=True, slots=True)
class CompressedMla:
    """DeepSeek V4: one cached row per `ratio` tokens, 1024 bytes in bf16, 584 in fp8 (448 + 128 rope + 8 scale)."""

    layers: int
    ratio: int
    row_bytes_bf16: int = 1024
    row_bytes_fp8: int = 584

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:
        """Grows with every token at 1/ratio of a row, on every rank."""
        row = _row_bytes(dtype, self.row_bytes_bf16, self.row_bytes_fp8)
        return KvShape(bytes_per_token=self.layers * row / self.ratio * tp)


@dataclass(frozen=True, slots=True)
class SlidingMla:
    """The uncompressed rows of the last `window` tokens beside a compressed cache (DeepSeek V4)."""

    layers: int
    window: int
    row_bytes_bf16: int = 1024
    row_bytes_fp8: int = 584

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:
        """Grows up to the window, then stays, on every rank."""
        row = _row_bytes(dtype, self.row_bytes_bf16, self.row_bytes_fp8)
        return KvShape(window_bytes_per_token=self.layers * row * tp, window=self.window)


@dataclass(frozen=True, slots=True)
class CompressorState:
    """Inputs that a V4 compressor still has to fold: `window` tokens of `bytes_per_token` fp32 kv and score."""

    layers: int
    window: int
    bytes_per_token: int

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:  # noqa: ARG002 - fp32 whatever the KV dtype
        """Held in full from the first token, on every rank."""
        return KvShape(state_bytes=self.layers * self.window * self.bytes_per_token * tp)


def _row_bytes(dtype: KvDtype, bf16: int, fp8: int) -> float:
    return float(fp8) if dtype is KvDtype.FP8 else bf16 * dtype.element_bytes / KvDtype.F16.element_bytes
