"""An engine's own figures beside those of the file and of arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gateway.config.capacity import Capacity, capacity
from gateway.config.doubts import in_doubt
from gateway.config.endpoint import Endpoint
from gateway.config.mismatch import Mismatch
from gateway.config.offers import Serving
from gateway.config.paging import costliest, paging
from gateway.config.sizes import PoolSize
from gateway.core.backend import Backend
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.engine_pool import NOTHING_TOLD, EnginePool

__all__ = ["Told", "mismatches"]

_FILL_MEMORY = ("vllm", "sglang")
"""Engines whose pool is whatever memory is left; others' is as large as they were asked to make it."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an engine said of its room, as `capacity` takes it; None where it didn't."""

    slots: int | None = None
    pool_tokens: int | None = None
    block: int | None = None
    pool: EnginePool = NOTHING_TOLD


def mismatches(backend: Backend, endpoint: Endpoint, served: Sequence[Serving], told: Told) -> tuple[Mismatch, ...]:
    """Every figure that the engine and either the file or arithmetic tell, small differences included.

    Arithmetic is asked only where device and model are known.
    """
    own = replace(endpoint, kv_pool=PoolSize())
    room = capacity(
        backend, own, served, slots=told.slots, pool_tokens=told.pool_tokens, block=told.block, pool=told.pool
    )
    known = room if dict(room.sources)["pool"] == "engine" else None
    found = [*_declared_pool(backend, endpoint, served, known, told), *_declared_models(endpoint, served)]
    one = costliest(served)
    if one is not None and one.shape is not None and not in_doubt(one):
        found += _pool(backend, own, served, one, known, told)
        found += _blocks(backend, one, room.slots, told)
    return tuple(found)


def _declared_pool(
    backend: Backend, endpoint: Endpoint, served: Sequence[Serving], known: Capacity | None, told: Told
) -> Iterator[Mismatch]:
    if known is None or endpoint.kv_pool == PoolSize():
        return
    said = capacity(backend, endpoint, served, slots=told.slots, block=told.block)
    if said.pool_tokens:
        why = ("`kv_pool` was written for another start of the engine",)
        yield Mismatch("KV pool", known.pool_tokens, said.pool_tokens, "tokens", "the file", why)


def _declared_models(endpoint: Endpoint, served: Sequence[Serving]) -> Iterator[Mismatch]:
    said = {model.id: model for model in endpoint.declared}
    for one in served:
        model = said.get(one.offer.model)
        if model is None:
            continue
        if model.context and one.engine_window:
            why = ("the engine was started with another context; the smaller counts",)
            yield Mismatch("window", one.engine_window, model.context, "tokens", "the file", why)
        if model.kv != "auto" and dict(one.offer.sources).get("kv_format") == "engine":
            has, written = KvDtype.parse(one.kv_format).element_bytes, KvDtype.parse(model.kv).element_bytes
            why = (f"it keeps {one.kv_format} where the file says `kv: {model.kv}`; the engine's counts",)
            yield Mismatch("KV cache an element", has, written, "bytes", "the file", why)


def _pool(
    backend: Backend, own: Endpoint, served: Sequence[Serving], one: Serving, known: Capacity | None, told: Told
) -> Iterator[Mismatch]:
    if known is None or not backend.device.memory:
        return
    unasked = replace(told.pool, blocks=None, concurrency=None, slot_tokens=None)
    by_memory = capacity(backend, own, served, slots=told.slots, pool=unasked)
    more = known.pool_tokens > by_memory.pool_tokens
    if by_memory.pool_tokens and (more or backend.engine in _FILL_MEMORY):
        causes = tuple(_causes(one, more=more, share_told=told.pool.memory_share is not None))
        yield Mismatch("KV pool", known.pool_tokens, by_memory.pool_tokens, "tokens", "arithmetic", causes)


def _blocks(backend: Backend, one: Serving, slots: int, told: Told) -> Iterator[Mismatch]:
    usual, as_told = (paging(backend, one, slots, block, told.pool) for block in (None, told.block))
    if usual is None or as_told is None:
        return
    if told.block and max(told.block, usual.plan.block) > 1:
        why = ("another `--block-size`", "another number format of the KV cache (`kv`)", "another `tensor_parallel`")
        yield Mismatch("KV block", told.block, usual.plan.block, "tokens", "arithmetic", why)
    if told.pool.bytes and told.pool.blocks:
        each = told.pool.bytes / (told.pool.blocks / told.pool.groups)
        why = (
            "another number format of the KV cache (`kv`)",
            "another `tensor_parallel`",
            "layers that cache otherwise",
        )
        yield Mismatch("KV block", each, as_told.plan.block_bytes, "bytes", "arithmetic", why)
    whole = told.pool.full_request_blocks
    if whole is not None and as_told.in_flight_of(whole) is None:
        causes = ("speculative decoding", "layers that cache otherwise; the engine's count is used")
        expected = as_told.plan.admission_blocks(one.full)
        yield Mismatch("a request of full length", whole, expected, "blocks", "arithmetic", causes)


def _causes(one: Serving, *, more: bool, share_told: bool) -> Iterator[str]:
    sources = dict(one.offer.sources)
    if sources.get("weights") == "assumed":
        yield f"its weights are not {one.weights_format}, which was assumed (`weights`)"
    if "kv_format" not in sources and more:
        yield "its KV cache has fewer than 16 bits an element (`kv`)"
    if not share_told:
        yield f"it was given a {'larger' if more else 'smaller'} share of memory than usual (`device: budget`)"
    if not more:
        yield "something else holds memory of that device"
