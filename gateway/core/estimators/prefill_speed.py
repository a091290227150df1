"""How long a backend needs to read a prompt."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PrefillSpeed"]


@dataclass(frozen=True, slots=True)
class PrefillSpeed:
    """Prefill alone on the device: `u * a * (1 + (c + u/2) / x)` seconds for u new tokens after c cached ones.

    `seconds_per_token` (a) is the price of a token at depth 0; attention makes it rise linearly with depth, to twice
    that at `half_depth` tokens (x). gpt-oss-20b on a DGX Spark under llama.cpp measures 3611/3361/3148/2686 tokens/s
    at depth 0/4k/8k/16k, which is a = 277 µs, x = 47.7 k.
    """

    seconds_per_token: float
    half_depth: float = 48_000.0

    def seconds(self, uncached: int, cached: int = 0) -> float:
        """Seconds to prefill `uncached` tokens behind `cached` ones that are already in the KV cache."""
        return uncached * self.seconds_per_token * (1.0 + (cached + uncached / 2) / self.half_depth)
