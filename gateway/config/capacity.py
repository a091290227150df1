"""How much a backend holds: slots, KV pool and block, each from the best source there is, with the source named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.config.endpoint import Endpoint
from gateway.config.offers import Serving
from gateway.core.backend import Backend
from gateway.core.kv.shape import KvShape

__all__ = ["Capacity", "capacity", "kv_pool_bytes", "sequences_that_fit", "tokens_in"]

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
_BUFFERS = 1024**3
_WORKING = 2 * 1024**3
_WORKING_SHARED = 2 * 1024**3
"""Bytes a device for activations, graphs and libraries: vLLM measures 1.5 to 2.7 GiB and 0.27 GiB of libraries, which
become 2.1 GiB with tensor parallelism; llama.cpp's buffers take about 1 GiB. At most a tenth of a device is taken."""
_TYPICAL = 8192
"""Tokens of the sequence whose constant part (state, window) is spread over a pool in tokens."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What admission may fill.

    `slots` requests at once; `pool_tokens` of KV cache (0: not known, slots alone bound it); `block` tokens a KV block;
    `pool_bytes` and `weights_bytes` over all devices, 0 where not known; `sources` are (fact, its source) pairs.
    """

    slots: int
    pool_tokens: int
    block: int
    sources: tuple[tuple[str, str], ...]
    pool_bytes: int = 0
    weights_bytes: int = 0


def capacity(
    backend: Backend,
    endpoint: Endpoint,
    served: Sequence[Serving],
    *,
    slots: int | None = None,
    pool_tokens: int | None = None,
    block: int | None = None,
) -> Capacity:
    """What a backend holds. `slots`, `pool_tokens` and `block` are what its engine said, None where it didn't.

    Declared wins, then the engine, then the memory of the device less the weights; when nothing tells, the pool is 0.
    """
    sources: dict[str, str] = {}
    kv = costliest(served)
    weights = sum(one.weights_bytes for one in served) * _copies(backend)
    pool_bytes = 0
    if endpoint.kv_pool.tokens:
        tokens, sources["pool"] = endpoint.kv_pool.tokens, "declared"
    elif endpoint.kv_pool.bytes:
        pool_bytes, sources["pool"] = endpoint.kv_pool.bytes, "declared"
        tokens = tokens_in(kv, pool_bytes) if kv else 0
    elif pool_tokens:
        tokens, sources["pool"] = pool_tokens, "engine"
    else:
        pool_bytes = max(0, kv_pool_bytes(backend, weights)) if weights else 0
        tokens = tokens_in(kv, pool_bytes) if kv else 0
        sources["pool"] = "device memory less weights" if tokens else "not known"
    if endpoint.running:
        at_once, sources["slots"] = endpoint.running, "declared"
    elif slots:
        at_once, sources["slots"] = slots, "engine"
    else:
        at_once, sources["slots"] = _SLOTS.get(backend.engine, 8), f"usual for {backend.engine}"
    if not pool_bytes and tokens and kv:
        # llama.cpp allocates the constant part once a slot; elsewhere it is spread as in a typical sequence.
        fixed = kv.state_bytes + kv.window_bytes_per_token * kv.window
        whole = backend.engine == "llama.cpp"
        pool_bytes = int(tokens * kv.bytes_per_token + at_once * fixed if whole else tokens * per_token(kv))
    sources["block"] = "engine" if block else f"usual for {backend.engine}"
    return Capacity(
        at_once, tokens, block or _BLOCK.get(backend.engine, 1), tuple(sources.items()), pool_bytes, weights
    )


def kv_pool_bytes(backend: Backend, weights_bytes: int) -> int:
    """Bytes that memory leaves for the KV cache; negative when the weights alone are too large, 0 when not known."""
    device = backend.device
    if not device.memory:
        return 0
    if backend.engine == "llama.cpp":
        working = _BUFFERS
    else:
        working = _WORKING + (_WORKING_SHARED if device.tensor_parallel > 1 else 0)
    each = min(working, device.memory // device.count // 10)
    return int(device.memory * device.budget) - weights_bytes - each * device.count


def _copies(backend: Backend) -> int:
    """Copies of the weights: one for each tensor-parallel group; llama.cpp splits layers over all its devices."""
    if backend.engine == "llama.cpp":
        return 1
    return max(1, backend.device.count // backend.device.tensor_parallel)


def costliest(served: Sequence[Serving]) -> KvShape | None:
    """The KV shape that holds the fewest tokens, the safe one to count a shared pool in; None when nothing keeps KV."""
    shapes = [one.offer.kv for one in served if one.offer.kv.bytes(1) > 0]
    return max(shapes, key=lambda kv: kv.bytes(_TYPICAL), default=None)


def per_token(kv: KvShape) -> float:
    """Bytes a token, with what a sequence holds whatever its length spread over a typical one."""
    return kv.bytes(_TYPICAL) / _TYPICAL


def tokens_in(kv: KvShape, pool_bytes: int) -> int:
    """Tokens of typical sequences that a pool of that many bytes holds."""
    return int(pool_bytes / per_token(kv))


def sequences_that_fit(kv: KvShape, pool_bytes: int, tokens: int) -> int:
    """How many sequences of that many tokens a pool of that many bytes holds."""
    return pool_bytes // max(kv.bytes(tokens), 1)
