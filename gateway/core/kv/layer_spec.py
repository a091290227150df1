"""One kind of layer as an engine's allocator sees it: bytes a row and layer on one rank, window, state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

__all__ = ["Kind", "LayerSpec"]


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
    CHUNKED kinds. `state_bytes`: what STATE kinds keep whatever the length. `latent`: one vector for all heads.
    `compressed`: a part of DeepSeek V4's cache, whose pages are packed. `name` and `formula` say what it is and how
    `row_bytes` or `state_bytes` came about.
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

    @property
    def token_bytes(self) -> float:
        """Bytes that one token adds to one layer on one rank; 0.0 for a recurrent layer."""
        return self.row_bytes / self.tokens_per_row

    def page_bytes(self, tokens: int) -> int:
        """Bytes of a block of `tokens` tokens in one layer."""
        return math.ceil(-(-tokens // self.tokens_per_row) * self.row_bytes)

    def on_stage(self, stages: int) -> int:
        """Layers of this kind on the fullest of `stages` pipeline stages."""
        return -(-self.layers // stages)
