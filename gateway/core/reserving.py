"""From a demand and one backend to a footprint: the cached prefix, and the KV tokens to reserve beside it."""

from __future__ import annotations

from math import trunc

from gateway.core.backend import Offer
from gateway.core.demand import Demand
from gateway.core.footprint import Footprint
from gateway.core.request import Hit
from gateway.core.snapshot import BackendView

__all__ = ["footprint_of", "held_on"]


def held_on(view: BackendView, demand: Demand, hit: Hit | None) -> tuple[int, int, int]:
    """Tokens of the prompt expected from the cache, tokens that running requests hold for it, tokens to reserve."""
    kv = demand.kv
    if 0 < view.pool < kv:
        # A pool that holds the prompt and a short answer is used to its end, not refused.
        kv = view.pool - view.pool % view.block
    if hit is None:
        return 0, 0, kv
    prompt, block = demand.estimate.prompt, view.block
    cached = hit.tokens(prompt, block)
    if not hit.pinned or not view.backend.shares_prefix:
        return cached, 0, kv
    pinned = trunc(prompt * hit.pinned)
    if hit.held is not None and hit.held < pinned:
        pinned = hit.held
    # States and windows are each sequence's own.
    shared = max(0, min(cached, pinned - pinned % block, kv - block - demand.beside))
    return cached, shared, kv - shared


def footprint_of(view: BackendView, offer: Offer, demand: Demand, held: tuple[int, int, int]) -> Footprint:
    """What the request needs on that backend, as that offer of it; `held` as `held_on` says."""
    cached, shared, kv = held
    prompt, n = demand.estimate.prompt, demand.sequences
    apart = n > 1 and not view.backend.shares_prefix
    kv_bytes = n * offer.kv.bytes(demand.sequence) if apart else offer.kv.bytes(demand.kv - demand.beside)
    return Footprint(
        prompt, demand.estimate.prompt_high, cached, prompt - cached, demand.output * n, demand.output_mean,
        demand.max_tokens, kv, kv_bytes, n, demand.estimate.tier, shared, demand.ceiling - shared,
    )  # fmt: skip
