"""`kvgate model --json`: the same figures for scripts, in bytes and tokens."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gateway.cli.model_report import ModelReport

__all__ = ["as_json"]


def as_json(made: ModelReport) -> dict[str, Any]:
    """The whole report as one JSON object."""
    found, shape = made.found, made.found.described.shape
    deployment, memory, plan = made.deployment, made.memory, made.plan
    answer: dict[str, Any] = {
        "id": shape.id,
        "architecture": found.described.architecture,
        "source": found.origin,
        "path": str(found.path) if found.path is not None else None,
        "confidence": shape.confidence.value,
        "caveats": list(found.described.caveats),
        "layers": shape.depth,
        "hidden": shape.hidden,
        "vocab": shape.vocab,
        "window": shape.max_context,
        "weights": {
            "count": int(shape.params_total),
            "read_per_token": int(shape.read_params),
            "experts": shape.experts,
            "experts_per_token": shape.experts_per_token,
            "bytes": made.weights_bytes,
            "format": made.weights_format,
            "exact": found.described.weights_exact and made.weights_format == found.described.weights_format,
        },
        "attention": [{"kind": type(layers).__name__, **_fields(layers)} for layers in shape.layers],
        "deployment": {**asdict(deployment), "kv_dtype": deployment.kv_dtype.name.lower(), "context": made.context},
    }
    answer["deployment"].pop("value_dtype")
    if not shape.kv_known:
        return {**answer, "kv": None}
    kv = shape.kv(deployment.kv_dtype)
    answer["kv"] = {
        "bytes_per_token": kv.bytes_per_token,
        "window_bytes_per_token": kv.window_bytes_per_token,
        "window": kv.window,
        "state_bytes": kv.state_bytes,
    }
    if plan is not None:
        answer["pool"] = {
            "block": plan.block,
            "block_bytes": plan.block_bytes,
            "allocated_bytes": plan.allocated_bytes,
            "steps": [step._asdict() for step in plan.steps],
            "bytes": memory.pool,
            "blocks": plan.blocks_in(memory.pool) if memory.pool is not None else None,
            "tokens": plan.capacity_tokens(memory.pool) if memory.pool is not None else None,
            "copies": memory.copies,
        }
    answer["requests"] = [asdict(one) for one in made.lengths]
    return answer


def _fields(layers: Any) -> dict[str, Any]:
    return {name: value for name, value in asdict(layers).items() if value is not None}
