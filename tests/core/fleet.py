"""Small fleets for tests: backends, snapshots, requests and policies in a line each, with round numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.core.backend import Backend, Device, Offer
from gateway.core.boundary import Label
from gateway.core.estimators.decode_speed import DecodeSpeed
from gateway.core.estimators.prefill_speed import PrefillSpeed
from gateway.core.estimators.speed_prior import SpeedPrior
from gateway.core.kv.shape import KvShape
from gateway.core.plan import Plan, Route
from gateway.core.request import Consent, Estimate, Hit, Request
from gateway.core.snapshot import BackendView, Health, Snapshot

NOW = 1000.0
DEVICE = Device("test-device", memory=96 << 30, bandwidth=1e12, flops=1e14)


def speed(prefill: float = 5000.0, step: float = 0.02) -> SpeedPrior:
    """`prefill` tokens a second at any depth, `step` seconds a decode step of any batch."""
    return SpeedPrior(
        PrefillSpeed(1.0 / prefill, half_depth=1e12), DecodeSpeed(overhead_seconds=step, weight_seconds=0.0)
    )


def offer(model: str = "m", window: int = 32_768, *, prefill: float = 5000.0, step: float = 0.02, **more: Any) -> Offer:
    more.setdefault("served_as", model)
    return Offer(model=model, window=window, kv=KvShape(1000.0), speed=speed(prefill, step), **more)


def view(
    name: str = "a",
    *,
    offers: tuple[Offer, ...] | None = None,
    slots: int = 8,
    pool: int = 100_000,
    health: Health = Health.UP,
    clearance: Label = Label.RESTRICTED,
    shares_prefix: bool = True,
    context_cap: int | None = None,
    abilities: frozenset[str] | None = None,
    queued_prefill: float = 2.0,
    one_model: bool = False,
    **more: Any,
) -> BackendView:
    backend = Backend(
        name,
        "vllm",
        DEVICE,
        clearance=clearance,
        shares_prefix=shares_prefix,
        context_cap=context_cap,
        abilities=abilities,
        queued_prefill=queued_prefill,
        one_model=one_model,
    )
    more.setdefault("block", 16)
    return BackendView(backend, health, (offer(),) if offers is None else offers, slots, pool, **more)


def snapshot(*views: BackendView, now: float = NOW) -> Snapshot:
    return Snapshot(now, views)


def request(
    id: str = "r1",
    *,
    model: str = "m",
    prompt: int = 1000,
    high: int | None = None,
    output: int = 200,
    output_high: int | None = None,
    estimates: Mapping[str, Estimate] | None = None,
    waited: float = 0.0,
    wait: float = 60.0,
    client: str = "c",
    klass: str = "default",
    label: Label = Label.PUBLIC,
    consent: Consent = Consent.ANY,
    **more: Any,
) -> Request:
    if estimates is None:
        estimates = {model: Estimate(prompt, prompt if high is None else high, output, output_high or output)}
    arrival = NOW - waited
    return Request(
        id=id,
        model=model,
        client=client,
        klass=klass,
        label=label,
        arrival=arrival,
        deadline=arrival + wait,
        estimates=estimates,
        consent=consent,
        **more,
    )


def plan(route: Route | None = None, **more: Any) -> Plan:
    """A policy with one route, from `m` to the model `m` unless told otherwise."""
    route = route or Route("m", "m")
    return Plan(backends=(), routes={route.name: route}, **more)


def hit(share: float, trust: float = 1.0, pinned: bool = False) -> Hit:
    return Hit(share, trust, pinned)
