"""What one sequence costs in KV cache, as three terms: growing, capped by a window, constant."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["KvShape", "blocks", "round_up"]


@dataclass(frozen=True, slots=True)
class KvShape:
    """Bytes of KV cache of one sequence of n tokens: `A*n + A_w*min(n, W) + S`, summed over all devices.

    `bytes_per_token` (A) grows without bound; `window_bytes_per_token` (A_w) stops at `window` tokens (W), as in
    sliding-window and chunked layers; `state_bytes` (S) is held whatever the length, as in recurrent layers.
    """

    bytes_per_token: float = 0.0
    window_bytes_per_token: float = 0.0
    window: int = 0
    state_bytes: int = 0

    def bytes(self, tokens: int) -> int:
        """Bytes held by a sequence of `tokens` tokens, rounded up, before rounding to blocks."""
        grown = self.bytes_per_token * tokens
        if self.window:
            grown += self.window_bytes_per_token * min(tokens, self.window)
        return math.ceil(grown) + self.state_bytes

    def marginal(self, tokens: int) -> float:
        """Bytes that one more token adds to a sequence which holds `tokens` tokens."""
        return self.bytes_per_token + (self.window_bytes_per_token if tokens < self.window else 0.0)

    def tokens_in(self, budget: int) -> int:
        """The longest sequence, in tokens, that fits in `budget` bytes; 0 if not even the state fits.

        Raises OverflowError if the budget holds any length (a model whose cache stops growing).
        """
        left = budget - self.state_bytes
        if left <= 0:
            return 0
        early = self.bytes_per_token + self.window_bytes_per_token
        if early > 0 and left < early * self.window:
            return int(left / early)
        if self.bytes_per_token == 0:
            raise OverflowError("the cache of this model stops growing: any length fits")
        return int((left - self.window_bytes_per_token * self.window) / self.bytes_per_token)

    def scaled(self, factor: float) -> KvShape:
        """The same growth at `factor` times the bytes, e.g. 1/tp for one rank of an evenly split model."""
        return KvShape(
            self.bytes_per_token * factor,
            self.window_bytes_per_token * factor,
            self.window,
            math.ceil(self.state_bytes * factor),
        )

    def __add__(self, other: KvShape) -> KvShape:
        """Both caches of one sequence together.

        Two different windows become one of the bytes-weighted mean length: exact once both are full and before either
        is, an over-estimate in between (min(n, W) is concave in W), so never too small a reservation.
        """
        rate = self.window_bytes_per_token + other.window_bytes_per_token
        if self.window == other.window or rate == 0:
            window = max(self.window, other.window)
        elif self.window_bytes_per_token == 0:
            window = other.window
        elif other.window_bytes_per_token == 0:
            window = self.window
        else:
            full = self.window_bytes_per_token * self.window + other.window_bytes_per_token * other.window
            window = math.ceil(full / rate)
        return KvShape(
            self.bytes_per_token + other.bytes_per_token,
            rate,
            window,
            self.state_bytes + other.state_bytes,
        )


def blocks(tokens: int, block: int) -> int:
    """Engine blocks of `block` tokens that `tokens` tokens occupy (vLLM: 16 unless hybrid; llama.cpp: 1)."""
    return -(-tokens // block)


def round_up(tokens: int, block: int) -> int:
    """Tokens that `tokens` tokens really occupy in an engine which hands out whole blocks."""
    return -(-tokens // block) * block
