"""How vLLM packs layers whose cache rows differ in size into one page (DeepSeek V4)."""

from __future__ import annotations

__all__ = ["packed_page"]

_GRANULE = 576


def packed_page(rows: int, row_bytes: int) -> int:
    """Bytes of one layer's part of a page: `rows` rows, rounded up to 576 bytes. A page is the sum over its layers."""
    return -(-rows * row_bytes // _GRANULE) * _GRANULE
