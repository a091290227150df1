"""`kvgate check --json`: problems and meaning as one JSON object, for scripts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gateway.cli.check_report import LENGTHS, BackendReport, ModelReport, Report, RouteReport
from gateway.config.problems import Problem

__all__ = ["as_json"]


def as_json(
    file: str, problems: Iterable[Problem], warnings: Iterable[Problem], found: Report | None
) -> dict[str, Any]:
    """The whole answer, in bytes and tokens; `found` is None when problems kept the file from being understood."""
    listed = [_problem(problem) for problem in problems]
    answer: dict[str, Any] = {"file": file, "ok": not listed, "problems": listed}
    answer["warnings"] = [_problem(warning) for warning in warnings]
    if found is not None:
        answer["backends"] = [_backend(backend) for backend in found.backends]
        answer["routes"] = [_route(route) for route in found.routes]
        answer["reach"] = {label.name.lower(): list(names) for label, names in found.reach}
    return answer


def _problem(problem: Problem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in ("file", "line", "column", "path", "message", "hint")}


def _backend(one: BackendReport) -> dict[str, Any]:
    device, held = one.backend.device, one.capacity
    return {
        "name": one.backend.name,
        "engine": one.backend.engine,
        "asked": one.asked is not None,
        "reachable": None if one.asked is None else one.asked == "",
        "error": one.asked or None,
        "off_premises": one.backend.off_premises,
        "clearance": one.backend.clearance.name.lower(),
        "device": {
            "id": device.id,
            "known": device.known,
            "count": device.count,
            "tensor_parallel": device.tensor_parallel,
            "memory": device.memory,
            "bandwidth": device.bandwidth,
            "flops": device.flops,
        },
        "slots": held.slots,
        "pool_tokens": held.pool_tokens,
        "pool_bytes": held.pool_bytes,
        "block": held.block,
        "sequence_tokens": held.charge.most,
        "weights_bytes": held.weights_bytes,
        "sources": dict(held.sources),
        "device_reports": dict(one.device_reports) if one.device_reports is not None else None,
        "notes": list(one.notes),
        "doubts": [{"message": what, "hint": hint} for what, hint in one.doubts],
        "mismatches": [each.as_json() for each in one.mismatches],
        "models": [_model(model) for model in one.models],
    }


def _model(one: ModelReport) -> dict[str, Any]:
    offer = one.serving.offer
    return {
        "id": offer.model,
        "served_as": offer.served_as,
        "window": offer.window,
        "kv_format": one.serving.kv_format,
        "kv_bytes_per_token": offer.kv.bytes_per_token,
        "kv_window_bytes_per_token": offer.kv.window_bytes_per_token,
        "kv_window": offer.kv.window,
        "kv_state_bytes": offer.kv.state_bytes,
        "weights_format": one.serving.weights_format,
        "weights_bytes": one.serving.weights_bytes,
        "abilities": sorted(offer.abilities),
        "fits": {str(tokens): count for tokens, count in zip(LENGTHS, one.fits, strict=True)},
        "sources": dict(offer.sources),
    }


def _route(one: RouteReport) -> dict[str, Any]:
    return {
        "name": one.route.name,
        "class": one.route.klass,
        "data": one.route.label.name.lower(),
        "context": one.cap,
        "consent": one.route.consent.name.lower(),
        "steps": [
            {"model": step.model, "backends": list(step.open), "closed": [list(pair) for pair in step.closed]}
            for step in one.steps
        ],
    }
