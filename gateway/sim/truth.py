"""Emulated engines for the backends of a configuration: what their devices and models are, by the catalogue.

A real device is never just as fast as its catalogue says. So each one's constants are off by factors: those that are
asked for, and a spread by chance that its name and a seed decide, whatever other backends there are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gateway.config.capacity import Capacity, capacity
from gateway.config.compile import compile_policy
from gateway.config.endpoint import endpoints
from gateway.config.offers import Serving, serving
from gateway.config.policy import Policy
from gateway.core.backend import Backend
from gateway.errors import ConfigError
from gateway.sim.engine_model import EngineModel
from gateway.sim.profile import EngineProfile
from gateway.sim.scheduler import PagedScheduler
from gateway.sim.slots import SlotScheduler
from gateway.sim.step_time import StepTime

__all__ = ["SLOTTED", "Truth", "emulated"]

SLOTTED = frozenset(("llama.cpp", "ollama"))
"""Engines that keep one sequence a slot; the others are emulated as vLLM."""
_CELLS = 16
"""Tokens by which prefixes in slots are compared."""
_BUDGET, _LARGE_BUDGET = 2048, 8192
_LARGE = 70 * 1024**3
"""vLLM's default token budget of an iteration: the larger one from so many bytes of a device's own memory on."""
_UNIFIED = 0.80
"""A device of which engines may use no more shares its memory with the system."""
_EXPERTS = 1 << 20
"""Number of experts that gives any share of them as a whole number of experts."""


@dataclass(frozen=True, slots=True)
class Truth:
    """How the emulated devices differ from their catalogue entries.

    `factors`: durations of a backend over those of the catalogue, by backend name. `noise`: standard deviation of the
    logarithm of a further factor, drawn by `seed` for each backend's prefill, weights and KV reads apart.
    """

    factors: Mapping[str, float] = field(default_factory=dict)
    noise: float = 0.0
    seed: int = 0


def emulated(policy: Policy, model: str | None = None, truth: Truth = Truth()) -> dict[str, EngineModel]:
    """An idle engine for each backend, by name. One with several models is emulated with `model`, else its first.

    Raises ConfigError for a backend of which the file tells too little to emulate it, and for a factor of a backend
    that there is not.
    """
    known = {spec.name for spec in policy.backends}
    for name in truth.factors:
        if name not in known:
            raise ConfigError(f"there is no backend {name}; the file has {', '.join(sorted(known))}")
    addresses = endpoints(policy)
    engines = {}
    for backend in compile_policy(policy).backends:
        address = addresses[backend.name]
        served = serving(backend, address)
        if not served:
            raise ConfigError(
                f"backend {backend.name} names no model, and an emulated engine can't be asked; "
                "add models: [{id: ...}] to it"
            )
        one = next((each for each in served if model and each.offer.answers_to(model)), served[0])
        profile = _profile(backend, one, capacity(backend, address, [one]), truth)
        engines[backend.name] = EngineModel(profile, SlotScheduler if backend.engine in SLOTTED else PagedScheduler)
    return engines


def _profile(backend: Backend, one: Serving, held: Capacity, truth: Truth) -> EngineProfile:
    block = _CELLS if backend.engine in SLOTTED else held.block
    tokens = held.pool_tokens or held.slots * one.offer.window  # a hosted service: as many as it takes at once
    if tokens < 2 * block:
        raise ConfigError(
            f"backend {backend.name} has no memory for KV cache beside {one.offer.model}: "
            f"kvgate plan {one.offer.model} says what holds it"
        )
    state = math.ceil(held.charge.beside(one.offer.window) / block)
    blocks = tokens // block
    window = min(one.offer.window, (blocks - state) * block)
    if backend.engine in SLOTTED:
        window = min(window, tokens)
    large = backend.device.memory // backend.device.count >= _LARGE and backend.device.budget > _UNIFIED
    budget = _LARGE_BUDGET if large else _BUDGET
    return EngineProfile(
        device=backend.device.id,
        model=one.offer.served_as,
        step_time=_step_time(backend, one, truth),
        block_size=block,
        num_blocks=blocks,
        state_blocks=state,
        max_num_seqs=min(held.slots, budget),
        max_batched_tokens=budget,
        max_model_len=max(2, window),
    )


def _step_time(backend: Backend, one: Serving, truth: Truth) -> StepTime:
    speed = one.offer.speed
    decode, prefill = speed.decode, speed.prefill
    share = decode.expert_share if decode.expert_seconds else 0.0
    chance = random.Random(f"{truth.seed} {backend.name}")
    factor = truth.factors.get(backend.name, 1.0)
    reading, weights, kv = (factor * math.exp(truth.noise * chance.gauss(0.0, 1.0)) for _ in range(3))
    times = StepTime(
        overhead_s=decode.overhead_seconds * factor,
        shared_weights_s=decode.weight_seconds * weights,
        expert_weights_s=decode.expert_seconds * weights,
        experts=_EXPERTS if share else 0,
        experts_per_token=round(share * _EXPERTS),
        kv_token_s=decode.kv_seconds_per_token * kv,
        sequence_s=decode.sequence_seconds * factor,
        prefill_token_s=prefill.seconds_per_token * reading,
        prefill_half_depth=prefill.half_depth,
    )
    return times if times.overhead_s > 0.0 else replace(times, overhead_s=1e-4)
