"""Reads decisions written as YAML: a policy, backends and a request, and what must come of them.

Every key is a field of the values in `gateway.core`; what is left out has the defaults of `tests.core.fleet`. Times are
seconds before or after the moment of decision. A misspelt key fails the load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from gateway.core.boundary import Label
from gateway.core.plan import Breaker, ClassPolicy, Plan, QueueLimits, Route, RoutingCosts
from gateway.core.request import Consent, Estimate, Hit, Request
from gateway.core.snapshot import BackendView, Health, Snapshot
from tests.core import fleet

FOLDER = Path(__file__).parent
EXPECTED = {
    "verdict",
    "reason",
    "backend",
    "model",
    "tier",
    "out",
    "limit",
    "needed",
    "max_tokens",
    "kv",
    "retry_after",
}


@dataclass(frozen=True)
class Case:
    """One decision and what it must be."""

    name: str
    plan: Plan
    snapshot: Snapshot
    request: Request
    roll: float
    expect: dict[str, Any]


def load() -> Iterator[Case]:
    """All cases of all files, by file and place."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for raw in YAML(typ="safe").load(path):
            yield _case(path.stem, dict(raw))


def _case(stem: str, raw: dict[str, Any]) -> Case:
    name = f"{stem}: {raw.pop('name')}"
    views = tuple(_view(dict(backend)) for backend in raw.pop("backends"))
    policy = _plan(dict(raw.pop("policy", {})), views)
    wanted = _request(dict(raw.pop("request", {})))
    expect = raw.pop("expect")
    roll = raw.pop("roll", 0.0)
    assert not raw, f"{name}: unknown {sorted(raw)}"
    assert set(expect) <= EXPECTED, f"{name}: unknown {sorted(set(expect) - EXPECTED)}"
    return Case(name, policy, fleet.snapshot(*views), wanted, roll, expect)


def _plan(raw: dict[str, Any], views: tuple[BackendView, ...]) -> Plan:
    routes = {name: _route(name, dict(route)) for name, route in raw.pop("routes", {"m": {"serves": "m"}}).items()}
    if "classes" in raw:
        raw["classes"] = {name: ClassPolicy(name, **policy) for name, policy in raw["classes"].items()}
    for key, kind in {"queue": QueueLimits, "costs": RoutingCosts, "breaker": Breaker}.items():
        if key in raw:
            raw[key] = kind(**raw[key])
    return Plan(backends=tuple(view.backend for view in views), routes=routes, **raw)


def _route(name: str, raw: dict[str, Any]) -> Route:
    raw["fallback"] = tuple(raw.get("fallback", ()))
    if "consent" in raw:
        raw["consent"] = Consent[raw["consent"].upper()]
    if "label" in raw:
        raw["label"] = Label.parse(raw["label"])
    return Route(name=name, **raw)


def _view(raw: dict[str, Any]) -> BackendView:
    if "clearance" in raw:
        raw["clearance"] = Label.parse(raw["clearance"])
    if "health" in raw:
        raw["health"] = Health(raw["health"])
    if "abilities" in raw:
        raw["abilities"] = frozenset(raw["abilities"])
    if "retry_in" in raw:
        raw["retry_at"] = fleet.NOW + raw.pop("retry_in")
    shared = {key: raw.pop(key) for key in ("window", "prefill", "step") if key in raw}
    if "surfaces" in raw:
        shared["surfaces"] = frozenset(raw.pop("surfaces"))
    models = raw.pop("models", ["m"])
    detected = frozenset(raw.pop("detected", ()))
    raw["offers"] = tuple(fleet.offer(model, abilities=detected, **shared) for model in models)
    return fleet.view(**raw)


def _request(raw: dict[str, Any]) -> Request:
    if "label" in raw:
        raw["label"] = Label.parse(raw["label"])
    if "consent" in raw:
        raw["consent"] = Consent[raw["consent"].upper()]
    for key in ("needs", "tried", "surfaces"):
        if key in raw:
            raw[key] = frozenset(raw[key])
    if "hits" in raw:
        raw["hits"] = {name: Hit(**hit) for name, hit in raw["hits"].items()}
    if "estimates" in raw:
        raw["estimates"] = {model: Estimate(*numbers) for model, numbers in raw["estimates"].items()}
    return fleet.request(**raw)
