"""What one model takes on one engine, as values: bytes of a sequence, of blocks, and what a pool holds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.config.catalog.book import SHIPPED
from gateway.config.formats import WEIGHT_BYTES
from gateway.config.memory import kv_pool_bytes
from gateway.config.model_files.found import FoundModel
from gateway.core.backend import Backend, Device
from gateway.core.kv.deployment import Deployment
from gateway.core.kv.pool_plan import PoolPlan, plan_pool
from gateway.errors import ConfigError

__all__ = ["LENGTHS", "Length", "Memory", "ModelReport", "memory_of", "report"]

LENGTHS = (8192, 32_768, 131_072)
"""Tokens of the sequences that are counted."""
_UNKNOWN_CONTEXT = LENGTHS[-1]
"""Tokens that are taken for the longest request of a model that doesn't say."""
_SHARED_CACHE = ("llama.cpp", "ollama")
"""Engines that split layers over their devices and count one cache over all of them."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Where the KV cache comes from. Bytes: `pool` on the fullest rank (0: the weights don't fit; None: not said).

    `total`: memory of all devices, `weights` and `working` of it taken; `copies` of the model serve side by side.
    """

    pool: int | None = None
    total: int = 0
    weights: int = 0
    working: int = 0
    budget: float = 1.0
    device: Device | None = None
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Length:
    """A request of `tokens` tokens: bytes that it `stores`, `takes` of the fullest rank's pool once settled, must find
    free there to be `admitted`; over all ranks it takes `everywhere`; `fit` at once in all copies, None: not known.
    """

    tokens: int
    stores: int
    takes: int
    admitted: int
    everywhere: int
    fit: int | None


@dataclass(frozen=True, slots=True)
class ModelReport:
    """Everything that `kvgate model` says. `plan` is None where the model's layout is not known."""

    found: FoundModel
    deployment: Deployment
    memory: Memory
    weights_format: str
    weights_bytes: int
    plan: PoolPlan | None
    lengths: tuple[Length, ...]
    context: int


def report(found: FoundModel, deployment: Deployment, memory: Memory, weights: str) -> ModelReport:
    """The whole arithmetic of a model under a deployment; `weights`: a format to count in, or "auto"."""
    shape = found.described.shape
    named, size = weights_of(found, weights, deployment.engine)
    context = deployment.context or shape.max_context or _UNKNOWN_CONTEXT
    deployment = replace(deployment, context=context)
    if not shape.kv_known:
        return ModelReport(found, deployment, memory, named, size, None, (), context)
    plan = plan_pool(shape, deployment)
    slot = _longest(deployment, context)
    tokens = [one for one in LENGTHS if not slot or one < slot] + ([slot] if slot else [])
    if not shape.keeps_kv:
        return ModelReport(found, deployment, memory, named, size, plan, (), context)
    lengths = tuple(_length(plan, memory, one) for one in tokens)
    return ModelReport(found, deployment, memory, named, size, plan, lengths, context)


def weights_of(found: FoundModel, weights: str, engine: str) -> tuple[str, int]:
    """(format, bytes) of the weights: as the file has them, as asked, or as is usual for the engine."""
    described = found.described
    if described.weights_format and weights in ("auto", described.weights_format):
        return described.weights_format, described.weights_bytes
    if weights == "auto":
        weights = "q4_k_m" if engine in _SHARED_CACHE else "bf16"
    return weights, round(described.shape.params_total * WEIGHT_BYTES[weights])


def memory_of(
    deployment: Deployment, weights: int, *, pool: int | None, memory: int | None, device: str | None, devices: int
) -> Memory:
    """The pool as it was said (`pool` bytes a rank), or what `devices` devices leave beside `weights` bytes.

    Raises ConfigError for a device that the catalogue doesn't have, and where devices don't fill whole copies.
    """
    ranks = 1 if deployment.engine in _SHARED_CACHE else deployment.ranks
    if devices % ranks:
        raise ConfigError(f"{devices} devices are no whole number of copies of {ranks} devices each")
    copies = 1 if deployment.engine in _SHARED_CACHE else devices // ranks
    if pool is not None:
        return Memory(pool, copies=copies)
    if memory is None and device is None:
        return Memory(copies=copies)
    one = _device(device) if device is not None else Device("memory", memory or 0, 0.0, 0.0)
    if memory is not None:
        one = replace(one, memory=memory)
    used = devices // copies
    held = replace(one, memory=one.memory * used, count=used, tensor_parallel=deployment.tensor_parallel)
    left = kv_pool_bytes(Backend("model", deployment.engine, held), weights)
    working = int(held.memory * held.budget) - weights - left
    return Memory(max(0, left) // ranks, held.memory, weights, working, held.budget, one, copies)


def _device(name: str) -> Device:
    found = SHIPPED.device(name)
    if found is None:
        near = SHIPPED.nearest_device(name)
        raise ConfigError(f"the catalogue has no device {name}" + (f"; did you mean {near}?" if near else ""))
    return found


def _longest(deployment: Deployment, context: int) -> int:
    """Tokens of the longest request: the window, or with llama.cpp a slot's share of it."""
    if deployment.engine not in _SHARED_CACHE or deployment.unified or not context:
        return context
    return -(-context // deployment.slots)


def _length(plan: PoolPlan, memory: Memory, tokens: int) -> Length:
    fit: int | None = None
    if memory.pool is not None:
        fit = plan.sequences(memory.pool, tokens) * memory.copies
    return Length(
        tokens,
        plan.stored_bytes(tokens),
        plan.request_bytes(tokens),
        plan.admission_bytes(tokens),
        plan.total_bytes(tokens),
        fit,
    )
