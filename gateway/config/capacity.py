"""How much a backend holds: slots, KV pool and block, each from the best source there is, with the source named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.config.doubts import in_doubt
from gateway.config.endpoint import Endpoint
from gateway.config.memory import kv_pool_bytes, weight_copies
from gateway.config.offers import Serving
from gateway.config.paging import Paging, costliest, paging
from gateway.config.pool import Pool, pool_by_memory, pool_of_bytes, pool_told
from gateway.core.backend import Backend
from gateway.core.kv.charge import NO_CHARGE, Charge
from gateway.core.kv.engine_pool import NOTHING_TOLD, EnginePool
from gateway.core.kv.shape import KvShape, round_up

__all__ = ["Capacity", "capacity", "kv_pool_bytes", "sequences_that_fit"]

_BLOCK = {"vllm": 16}
_SLOTS = {
    "vllm": 256,
    "sglang": 256,
    "llama.cpp": 4,
    "ollama": 1,
    "dwarfstar": 1,
    "ninfer": 1,
    "openai": 8,
    "anthropic": 32,
}
"""Requests at once where nobody says: the engines' own defaults, and few for a stranger."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What admission may fill.

    `slots` requests at once; `pool_tokens` of KV cache (0: not known, slots alone bound it); `block` tokens a KV block;
    `charge`: tokens of the pool for each sequence beside its own; `copies` of the model share the pool evenly, and no
    sequence is in more than one; `pool_bytes` and `weights_bytes` over all devices, 0
    where not known; `sources` are (fact, its source) pairs.
    """

    slots: int
    pool_tokens: int
    block: int
    sources: tuple[tuple[str, str], ...]
    pool_bytes: int = 0
    weights_bytes: int = 0
    charge: Charge = NO_CHARGE
    copies: int = 1

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence that one copy holds; 0 where the pool is not known."""
        return self.pool_tokens // self.copies

    def sequences(self, tokens: int) -> int:
        """How many requests of that many tokens the pool holds; slots not counted."""
        held = round_up(tokens, self.block)
        return self.longest // max(1, held + self.charge.beside(held)) * self.copies


def capacity(
    backend: Backend,
    endpoint: Endpoint,
    served: Sequence[Serving],
    *,
    slots: int | None = None,
    pool_tokens: int | None = None,
    block: int | None = None,
    pool: EnginePool = NOTHING_TOLD,
) -> Capacity:
    """What a backend holds. `slots`, `pool_tokens`, `block` and `pool` are what its engine said, None where it didn't.

    Declared wins, then the engine, then the memory of the device less the weights; when nothing tells, the pool is 0.
    """
    sources: dict[str, str] = {"pool": ""}
    at_once, sources["slots"] = _at_once(backend, endpoint, slots)
    one = costliest(served)
    found = paging(backend, one, at_once, block, pool) if one else None
    weights = sum(each.weights_bytes for each in served) * weight_copies(backend)
    said = endpoint.kv_pool
    if said.tokens:
        made = Pool(said.tokens, found.unit.charge if found else NO_CHARGE, "declared")
    elif said.bytes:
        made = pool_of_bytes(backend, one, found, said.bytes)._replace(source="declared")
    else:
        trusted = None if one is not None and in_doubt(one) and not pool.full_request_blocks else found
        full = one.full if one else 0
        made = (
            pool_told(trusted, pool_tokens, block, full, pool)
            or _slots_of_their_own(backend, served, at_once, pool)
            or pool_by_memory(backend, one, found, weights, pool, doubtful=_doubtful(backend, one))
        )
    if made.source == "engine" and backend.engine == "llama.cpp" and pool.slot_tokens:
        by_memory = pool_by_memory(backend, one, found, weights, NOTHING_TOLD, doubtful=False)
        made = _shared_or_split(made, pool.slot_tokens, by_memory.tokens)
    sources["pool"] = made.source
    if made.charge.most:
        sources["charge"] = made.charged_by
    size = made.bytes or _bytes_of(backend, found, made, one, at_once)
    sources["block"] = "engine" if block else f"usual for {backend.engine}"
    if not block and found is not None and found.plan.block != _BLOCK.get(backend.engine, 1):
        sources["block"] = "arithmetic"
    usual = found.plan.block if found is not None else _BLOCK.get(backend.engine, 1)
    copies = pool.groups if made.source == "engine" else weight_copies(backend)
    listed = tuple(sources.items())
    return Capacity(at_once, made.tokens, block or usual, listed, size, weights, made.charge, max(1, copies))


def _at_once(backend: Backend, endpoint: Endpoint, slots: int | None) -> tuple[int, str]:
    if endpoint.running:
        return endpoint.running, "declared"
    if slots:
        return slots, "engine"
    return _SLOTS.get(backend.engine, 8), f"usual for {backend.engine}"


def _slots_of_their_own(backend: Backend, served: Sequence[Serving], slots: int, told: EnginePool) -> Pool | None:
    """Ollama gives each slot of each model the model's whole window, and moves layers to the CPU to make room."""
    if backend.engine != "ollama" or not served:
        return None
    widest = max([told.slot_tokens or 0, *(one.offer.window for one in served)])
    return Pool(widest * slots, source="engine" if told.slot_tokens == widest else "windows times slots")


def _shared_or_split(split: Pool, slot_tokens: int, by_memory: int) -> Pool:
    """llama.cpp's pool where it may be one cache for all slots or one for each, and does not tell: what the device's
    memory is closer to, by ratio."""
    if not by_memory or split.tokens * slot_tokens <= by_memory * by_memory:
        return split
    return split._replace(tokens=slot_tokens)


def _doubtful(backend: Backend, one: Serving | None) -> bool:
    return backend.device.confidence.is_low or (one is not None and in_doubt(one))


def _bytes_of(backend: Backend, found: Paging | None, made: Pool, one: Serving | None, slots: int) -> int:
    """About how many bytes a pool counted in tokens takes, over all devices."""
    if one is None or not made.tokens:
        return 0
    kv = one.offer.kv
    if backend.engine in ("llama.cpp", "ollama"):
        # The constant part is allocated once a slot.
        return int(made.tokens * kv.bytes_per_token + slots * (kv.state_bytes + kv.window_bytes_per_token * kv.window))
    if found is not None:
        blocks = made.tokens / found.unit.per_block / weight_copies(backend)
        return int(blocks * found.plan.block_bytes * backend.device.count)
    return int(made.tokens * kv.bytes(8192) / 8192)


def sequences_that_fit(kv: KvShape, pool_bytes: int, tokens: int) -> int:
    """How many sequences of that many tokens a pool of that many bytes holds."""
    return pool_bytes // max(kv.bytes(tokens), 1)
