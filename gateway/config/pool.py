"""The KV pool of a backend in the tokens that the ledger counts: from its engine's figures, else from memory."""

from __future__ import annotations

import math
from typing import NamedTuple

from gateway.config.memory import kv_pool_bytes, weight_copies
from gateway.config.offers import Serving
from gateway.config.paging import Paging
from gateway.core.backend import Backend
from gateway.core.kv.charge import NO_CHARGE, Charge
from gateway.core.kv.engine_pool import EnginePool
from gateway.core.kv.shape import KvShape

__all__ = ["DOUBT", "Pool", "pool_by_memory", "pool_of_bytes", "pool_told", "tokens_in"]

DOUBT = 0.75
"""Part of a pool that is believed when it was worked out from figures of low confidence: such entries of the catalogue
were derived from relatives, whose layers differ by up to a third."""
_TYPICAL = 8192
"""Tokens of the sequence whose constant part (state, window) is spread over a pool in tokens."""


class Pool(NamedTuple):
    """`tokens` as the ledger counts them, 0 where not known; `charge` for each sequence beside its own."""

    tokens: int
    charge: Charge = NO_CHARGE
    source: str = "not known"
    bytes: int = 0
    charged_by: str = "arithmetic"


def pool_told(found: Paging | None, tokens: int | None, block: int | None, full: int, told: EnginePool) -> Pool | None:
    """The pool by the engine's figures; None where it tells none. `full`: tokens of its longest request.

    Blocks say more than tokens: for a model with states or windows the tokens that vLLM logs are full requests times
    their length, and short ones cost more. What the engine charges a full request tells states and windows even of a
    model that nobody knows: spread over nothing, they are charged whole.
    """
    if not told.blocks or not block:
        if not tokens:
            return None
        return Pool(tokens, found.unit.charge if found else NO_CHARGE, "engine")
    whole = told.full_request_blocks
    if found is not None and found.plan.block == block:
        in_flight = found.in_flight if whole is None else found.in_flight_of(whole)
        if in_flight is not None:
            usable = found.unit.tokens(max(0, told.blocks - in_flight * told.groups))
            size = found.plan.block_bytes * told.blocks
            sure = "arithmetic" if whole is None else "engine and arithmetic"
            return Pool(usable - usable % block, found.unit.charge, "engine", size, sure)
    if whole is not None and (beside := whole - math.ceil(full / block)) >= 0:
        return Pool(told.blocks * block, Charge(beside * block, 0.0, beside * block), "engine", 0, "engine")
    return Pool(max(tokens or 0, told.blocks * block), NO_CHARGE, "engine")


def pool_by_memory(
    backend: Backend, one: Serving | None, found: Paging | None, weights: int, told: EnginePool, *, doubtful: bool
) -> Pool:
    """The pool that the devices' memory leaves beside the weights, all of it or, with figures in doubt, a part."""
    size = max(0, kv_pool_bytes(backend, weights, told.memory_share)) if weights else 0
    made = pool_of_bytes(backend, one, found, int(size * DOUBT) if doubtful else size)
    if not made.tokens:
        return Pool(0, NO_CHARGE, "not known", size)
    part = f", {DOUBT:.0%} of it: figures of low confidence" if doubtful else ""
    return made._replace(source=f"device memory less weights{part}")


def pool_of_bytes(backend: Backend, one: Serving | None, found: Paging | None, size: int) -> Pool:
    """The pool of so many bytes over all devices."""
    if one is None or size <= 0:
        return Pool(0, bytes=max(size, 0))
    if found is None:
        return Pool(tokens_in(one.offer.kv, size), bytes=size)
    plan, groups = found.plan, weight_copies(backend)
    if backend.engine in ("llama.cpp", "ollama"):
        return Pool(plan.blocks_in(size), bytes=size)
    blocks = plan.blocks_in(size // backend.device.count) * groups
    usable = found.unit.tokens(max(0, blocks - found.in_flight * groups))
    return Pool(usable - usable % plan.block, found.unit.charge, bytes=size)


def tokens_in(kv: KvShape, pool_bytes: int) -> int:
    """Tokens of typical sequences that a pool of that many bytes holds."""
    return int(pool_bytes / (kv.bytes(_TYPICAL) / _TYPICAL))
