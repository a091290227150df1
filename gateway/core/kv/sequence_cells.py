"""How llama.cpp sizes its KV cache: cells per slot, rounded up to 256."""

from __future__ import annotations

__all__ = ["cache_cells", "window_cells"]

_GRANULE = 256


def cache_cells(context: int, slots: int, *, unified: bool = False) -> int:
    """Cells (tokens) allocated for `context` tokens: one shared pool, or an equal share a slot, each rounded up."""
    if unified:
        return _pad(context)
    return _pad(-(-context // slots)) * slots


def window_cells(context: int, window: int, slots: int, ubatch: int = 512) -> int:
    """Cells (tokens) for sliding-window layers: one window a slot and one micro-batch, at most `context`."""
    return _pad(min(context, window * slots + ubatch))


def _pad(cells: int) -> int:
    return -(-cells // _GRANULE) * _GRANULE
