"""How long one engine iteration takes: decode by memory traffic, prefill by arithmetic.

    t_step(B, K) = t0 + W(B)/beta_w + A*K/beta_k + b*B
    W(B)         = W_shared + W_experts * (1 - (1 - k/E)^B)      expected union of the experts of B tokens
    pf(u, c)     = u * a * (1 + (c + u/2) / x_half)              u uncached tokens after c cached ones

Neighbouring tokens are routed to similar experts, so the union over-estimates from a few sequences on. Published batch
sweeps (gpt-oss-120b and Qwen3-30B-A3B on a DGX Spark) follow W(1)*sqrt(B) up to 32 sequences; beyond that the law goes
on linearly. The smaller of union and law is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = ["StepTime"]

SQRT_LAW_LIMIT = 32
"""Sequences up to which W(B) = W(1)*sqrt(B) was observed."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Constants of one model on one device, all in seconds, and the step times that follow from them."""

    overhead_s: float
    """t0: launch, sampling and scheduling, once an iteration."""
    shared_weights_s: float
    """W_shared/beta_w: reading the weights that every token uses."""
    expert_weights_s: float
    """W_experts/beta_w: reading all routed experts; 0 for a dense model."""
    experts: int
    """E, routed experts a layer; 0 for a dense model."""
    experts_per_token: int
    """k."""
    kv_token_s: float
    """A/beta_k: reading the keys and values of one context token."""
    sequence_s: float
    """b: sampling and bookkeeping a decoding sequence."""
    prefill_token_s: float
    """a: prefill of one token at depth 0."""
    prefill_half_depth: float
    """x_half: depth in tokens at which a prefill token costs twice as much."""

    def weights_s(self, batch: int) -> float:
        """Seconds to read the weights for `batch` decoding sequences."""
        if not self.experts:
            return self.shared_weights_s
        share = self.experts_per_token / self.experts
        union = self.shared_weights_s + self.expert_weights_s * (1.0 - (1.0 - share) ** batch)
        single = self.shared_weights_s + self.expert_weights_s * share
        law = math.sqrt(batch) if batch <= SQRT_LAW_LIMIT else batch / math.sqrt(SQRT_LAW_LIMIT)
        return min(union, single * law)

    def decode_s(self, batch: int, kv_tokens: int) -> float:
        """Seconds of an iteration with `batch` decoding sequences that together hold `kv_tokens` of context."""
        if not batch:
            return self.overhead_s
        return self.overhead_s + self.weights_s(batch) + self.kv_token_s * kv_tokens + self.sequence_s * batch

    def prefill_s(self, uncached: int, cached: int = 0) -> float:
        """Seconds to prefill `uncached` tokens that follow `cached` ones; chunks of a prompt add up to the whole."""
        return uncached * self.prefill_token_s * (1.0 + (cached + uncached / 2.0) / self.prefill_half_depth)

    def step_s(self, batch: int, kv_tokens: int, chunks: Iterable[tuple[int, int]]) -> float:
        """Seconds of a mixed iteration; `chunks` are (tokens, tokens before them) of the prompts in it."""
        return self.decode_s(batch, kv_tokens) + sum(self.prefill_s(tokens, before) for tokens, before in chunks)

    def scaled(self, factor: float) -> StepTime:
        """The same device with every duration multiplied by `factor`."""
        return replace(
            self,
            overhead_s=self.overhead_s * factor,
            shared_weights_s=self.shared_weights_s * factor,
            expert_weights_s=self.expert_weights_s * factor,
            kv_token_s=self.kv_token_s * factor,
            sequence_s=self.sequence_s * factor,
            prefill_token_s=self.prefill_token_s * factor,
        )
