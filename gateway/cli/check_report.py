"""What a file means, as values: what each backend holds, and where each name and label may go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.config.capacity import Capacity, capacity
from gateway.config.comparing import Told, mismatches
from gateway.config.compile import compile_policy
from gateway.config.doubts import doubts
from gateway.config.endpoint import Endpoint, endpoints
from gateway.config.mismatch import Mismatch
from gateway.config.offers import Detected, Serving, serving
from gateway.config.policy import Policy
from gateway.core.backend import Backend
from gateway.core.boundary import Label, within
from gateway.core.plan import Route
from gateway.engines.adapter import Facts

__all__ = ["LENGTHS", "BackendReport", "ModelReport", "Report", "RouteReport", "Step", "report"]

LENGTHS = (8192, 32_768, 131_072)
"""Tokens of the sequences that are counted into each pool."""


@dataclass(frozen=True, slots=True)
class ModelReport:
    """One model on one backend; `fits`: how many sequences of each of LENGTHS the pool holds, None where not known."""

    serving: Serving
    fits: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class BackendReport:
    """One backend. `asked` is None when its engine was not asked, "" when it answered, else why not.

    `doubts`: figures that admission does not rest on, with what to do; `mismatches`: large differences between what its
    engine tells and what was to be expected. `device_reports`: what its telemetry told; None: it has none, or nobody
    asked.
    """

    backend: Backend
    endpoint: Endpoint
    capacity: Capacity
    models: tuple[ModelReport, ...]
    asked: str | None
    notes: tuple[str, ...] = ()
    doubts: tuple[tuple[str, str], ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    device_reports: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One model of a route: the backends that may serve it, and (backend, why not) of those that may not."""

    model: str
    open: tuple[str, ...]
    closed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RouteReport:
    """One name that clients use, and its steps in order. `cap`: tokens a request, the route's own or its backends'."""

    route: Route
    steps: tuple[Step, ...]
    cap: int | None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that `kvgate check` says beyond problems. `reach`: backends that data of each label may reach."""

    backends: tuple[BackendReport, ...]
    routes: tuple[RouteReport, ...]
    reach: tuple[tuple[Label, tuple[str, ...]], ...]


def report(
    policy: Policy, asked: Mapping[str, Facts | str] | None, devices: Mapping[str, Mapping[str, Any]] | None = None
) -> Report:
    """What a policy means; `asked` is what engines said, by backend name (a str: why not), None if not asked.

    `devices`: what telemetry told, by backend name.
    """
    plan = compile_policy(policy)
    backends = tuple(
        replace(
            _backend(known, address, None if asked is None else asked.get(known.name, "was not asked")),
            device_reports=(devices or {}).get(known.name),
        )
        for known, address in zip(plan.backends, endpoints(policy).values(), strict=True)
    )
    routes = plan.routes.values() or [_own_route(model, plan.default_label) for model in _models(backends)]
    reach = tuple((label, tuple(b.name for b in plan.backends if within(label, b.clearance))) for label in Label)
    return Report(backends, tuple(_route(route, backends) for route in routes), reach)


def _models(backends: Sequence[BackendReport]) -> list[str]:
    return list(dict.fromkeys(model.serving.offer.model for backend in backends for model in backend.models))


def _own_route(model: str, label: Label) -> Route:
    return Route(name=model, serves=model, label=label)


def _backend(backend: Backend, address: Endpoint, said: Facts | str | None) -> BackendReport:
    facts = said if isinstance(said, Facts) else Facts()
    detected = Detected(facts.abilities, facts.surfaces, facts.pool.dtype)
    served = serving(backend, address, facts.models, detected)
    told = Told(facts.slots, facts.pool_tokens, facts.block, facts.pool)
    held = capacity(
        backend, address, served, slots=told.slots, pool_tokens=told.pool_tokens, block=told.block, pool=told.pool
    )
    asked = said if isinstance(said, str) else None if said is None else "is loading its model" if facts.loading else ""
    models = tuple(ModelReport(one, tuple(_fits(one, held, length) for length in LENGTHS)) for one in served)
    odd = mismatches(backend, address, served, told) if isinstance(said, Facts) else ()
    return BackendReport(
        backend,
        address,
        held,
        models,
        asked,
        facts.notes,
        tuple(doubts(backend, served, dict(held.sources)["pool"])),
        tuple(one for one in odd if one.is_large),
    )


def _fits(one: Serving, held: Capacity, tokens: int) -> int | None:
    """Sequences of that length in the pool."""
    return held.sequences(tokens) if tokens <= one.offer.window and held.pool_tokens else None


def _route(route: Route, backends: Sequence[BackendReport]) -> RouteReport:
    steps = tuple(_step(model, route.label, backends) for model in route.models)
    windows = [
        model.serving.offer.window
        for backend in backends
        for model in backend.models
        if model.serving.offer.answers_to(route.serves) and backend.backend.name in steps[0].open
    ]
    return RouteReport(route, steps, _cap(route, windows))


def _cap(route: Route, windows: Sequence[int]) -> int | None:
    if isinstance(route.context, int):
        return min(route.context, max(windows)) if windows else route.context
    if not windows:
        return None
    return min(windows) if route.context == "shortest" else max(windows)


def _step(model: str, label: Label, backends: Sequence[BackendReport]) -> Step:
    open_to, closed = [], []
    for one in backends:
        if not any(m.serving.offer.answers_to(model) for m in one.models):
            continue
        if within(label, one.backend.clearance):
            open_to.append(one.backend.name)
        else:
            closed.append((one.backend.name, f"cleared for {one.backend.clearance.name.lower()} data only"))
    return Step(model, tuple(open_to), tuple(closed))
