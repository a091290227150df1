"""What every kind of attention layer has in common."""

from __future__ import annotations

from typing import Protocol

from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.shape import KvShape

__all__ = ["AttentionLayers", "split_over_ranks"]


class AttentionLayers(Protocol):
    """`layers` layers of one model that cache alike."""

    @property
    def layers(self) -> int:
        """How many layers of this kind the model has."""
        ...

    def shape(self, dtype: KvDtype, tp: int = 1) -> KvShape:
        """Their KV cache for one sequence, summed over `tp` tensor-parallel ranks, copies included."""
        ...


def split_over_ranks(heads: int, tp: int) -> int:
    """Heads stored by all ranks together: each rank holds a whole number, so fewer heads than ranks are copied."""
    return -(-heads // tp) * tp
