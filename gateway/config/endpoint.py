"""Where a backend is and how to talk to it: what the shell needs and the core must not know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.config.backends import BackendSpec, KvEventsSpec, ModelSpec, TelemetrySpec
from gateway.config.catalog.book import SHIPPED, Catalogue
from gateway.config.policy import Policy
from gateway.config.secrets import Secret
from gateway.config.sizes import PoolSize

__all__ = ["DeclaredModel", "Endpoint", "Timeouts", "endpoint", "endpoints"]

DeclaredModel = ModelSpec
"""A model as the file declares it for one backend."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. `first_token` None: several times the prefill that was predicted. `abort` None: by the engine's kind."""

    connect: float = 2.0
    first_token: float | None = None
    token_gap: float = 60.0
    abort: float | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One backend's address, key and declared facts.

    `url` has no trailing slash and no /v1. `kv_pool` and `running` (requests at once) are what the file says; empty:
    found out. `abilities` overrules detection, by name; `catalogue`: what is known of models.
    """

    name: str
    url: str
    engine: str
    key: Secret | None = None
    timeouts: Timeouts = Timeouts()
    declared: tuple[DeclaredModel, ...] = ()
    kv_pool: PoolSize = field(default_factory=PoolSize)
    running: int | None = None
    abilities: Mapping[str, bool] = field(default_factory=dict)
    kv_events: KvEventsSpec | None = None
    """Where its engine tells what its KV cache holds."""
    telemetry: TelemetrySpec | None = None
    """Where its devices tell how they fare."""
    catalogue: Catalogue = SHIPPED


def endpoints(policy: Policy) -> dict[str, Endpoint]:
    """The endpoints of all declared backends, by name."""
    return {spec.name: endpoint(spec, policy.catalogue.catalogue) for spec in policy.backends}


def endpoint(spec: BackendSpec, catalogue: Catalogue = SHIPPED) -> Endpoint:
    """The endpoint of one declared backend."""
    said = spec.abilities.model_dump(exclude_none=True)
    return Endpoint(
        name=spec.name,
        url=spec.url,
        engine=spec.engine,
        key=spec.key,
        timeouts=Timeouts(
            spec.timeouts.connect, spec.timeouts.first_token, spec.timeouts.token_gap, spec.timeouts.abort
        ),
        declared=spec.models,
        kv_pool=spec.kv_pool,
        running=spec.running,
        abilities=said,
        kv_events=spec.kv_events,
        telemetry=spec.telemetry,
        catalogue=catalogue,
    )
