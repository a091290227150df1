"""How a backend's engine pages the model that it serves: the plan that memory and the engine's figures are put into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.config.offers import Serving
from gateway.core.backend import Backend
from gateway.core.kv.charge import PoolUnit, pool_unit
from gateway.core.kv.deployment import Deployment
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.engine_pool import EnginePool
from gateway.core.kv.pool_plan import PoolPlan, plan_pool

__all__ = ["Paging", "costliest", "paging"]

_TYPICAL = 8192
"""Tokens of the sequence by which models are compared."""
_LONGEST_STEP = 65_536
"""Tokens that no scheduler has in flight at once."""


@dataclass(frozen=True, slots=True)
class Paging:
    """One model on one engine. `full`: tokens of its longest request; `widest`: the plan if a step were very large."""

    plan: PoolPlan
    unit: PoolUnit
    full: int
    widest: PoolPlan

    @property
    def in_flight(self) -> int:
        """Blocks of one engine that a prefill under way holds beside what its request keeps, by the usual step."""
        return max(0, self.plan.admission_blocks(self.full) - self.plan.request_blocks(self.full))

    def in_flight_of(self, full_request: int) -> int | None:
        """The same from the blocks that the engine charges a full request; None where that can't be this model."""
        beyond = full_request - self.plan.request_blocks(self.full)
        most = self.widest.admission_blocks(self.full) - self.plan.request_blocks(self.full)
        return max(0, beyond) if -1 <= beyond <= max(most, 0) + 1 else None


def costliest(served: Sequence[Serving]) -> Serving | None:
    """The model that needs the most KV cache, the safe one to count a shared pool in; None when nothing keeps any."""
    keeping = [one for one in served if one.offer.kv.bytes(1) > 0]
    return max(keeping, key=lambda one: one.offer.kv.bytes(_TYPICAL), default=None)


def paging(backend: Backend, one: Serving, slots: int, block: int | None, told: EnginePool) -> Paging | None:
    """How the engine pages that model; None where its layout isn't known or the file overrules it."""
    if one.shape is None or not one.shape.kv_known or not one.shape.keeps_kv:
        return None
    cells = backend.engine in ("llama.cpp", "ollama")
    deployment = Deployment(
        engine=backend.engine,
        kv_dtype=KvDtype.parse(one.kv_format),
        tensor_parallel=1 if cells else backend.device.tensor_parallel,
        context=one.full * slots if cells else one.full,
        slots=slots,
        block=block or 0,
        prefix_caching=told.prefix_caching is not False,
    )
    plan = plan_pool(one.shape, deployment)
    if not plan.block_bytes:
        return None
    widest = plan_pool(one.shape, replace(deployment, batched_tokens=_LONGEST_STEP))
    return Paging(plan, pool_unit(plan), one.full, widest)
