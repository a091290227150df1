"""A policy as the values that decisions use."""

from __future__ import annotations

from dataclasses import replace

from gateway.config.auth import AuthSpec, KeyLimits
from gateway.config.backends import BackendSpec
from gateway.config.catalog.book import SHIPPED, Catalogue
from gateway.config.policy import BreakerSpec, Policy, RouteSpec
from gateway.config.tensor_parallel import usual_tensor_parallel
from gateway.core.backend import Backend, Device
from gateway.core.boundary import Label
from gateway.core.plan import Breaker, ClassPolicy, Plan, Pressure, QueueLimits, RetryPolicy, Route, RoutingCosts
from gateway.core.quota import ClientLimits, Quota
from gateway.core.request import Consent

__all__ = ["DEFAULT_LABEL", "UNKNOWN_DEVICE", "backend", "clearance", "compile_policy", "device"]

UNKNOWN_DEVICE = Device("unknown", memory=0, bandwidth=800e9, flops=100e12, known=False)
"""Middle of the catalogue; what is observed corrects it."""

_SHARING = {"vllm": True, "llama.cpp": False, "openai": False}
"""Whether requests that run at once share the KV blocks of a common prefix; llama.cpp's slots each hold their own."""

_GROWTH = 8.0
_LONGEST_REST = 120.0
"""A breaker's rest grows to so many times its first, and to no more than so many seconds."""
DEFAULT_LABEL = Label.INTERNAL
"""What requests count as that carry no label, where the file names no models."""
UNIFIED_HEADROOM = 0.80
HEADROOM = 0.92
"""Share of the pool that admission fills at first; less where an exhausted memory stops the whole machine."""


def device(spec: BackendSpec, catalogue: Catalogue = SHIPPED) -> Device:
    """The device of a backend: catalogue facts, overruled by the file's own numbers."""
    said = spec.device
    known = catalogue.device(said.id) if said.id else None
    found = known or replace(UNKNOWN_DEVICE, id=said.id or ("hosted" if spec.location == "off-prem" else "unknown"))
    numbers = {"memory": said.memory, "bandwidth": said.bandwidth, "flops": said.fp16, "budget": said.budget}
    given = {name: value for name, value in numbers.items() if value is not None}
    described = known is not None or {"bandwidth", "flops"} <= given.keys()
    found = replace(found, **given, known=described)  # type: ignore[arg-type]
    count = spec.devices.count
    models = [shape for model in spec.models if (shape := catalogue.model(model.id)) is not None]
    tp = spec.devices.tensor_parallel or usual_tensor_parallel(spec.engine, count, models)
    return replace(found, memory=found.memory * count, count=count, tensor_parallel=tp)


def clearance(spec: BackendSpec) -> Label:
    """What a backend may see: as declared, else everything on-prem and only public data off-prem."""
    if spec.clearance is not None:
        return Label.parse(spec.clearance)
    return Label.PUBLIC if spec.location == "off-prem" else Label.RESTRICTED


def backend(spec: BackendSpec, catalogue: Catalogue = SHIPPED) -> Backend:
    """One declared backend as the core knows it."""
    found = device(spec, catalogue)
    return Backend(
        name=spec.name,
        engine=spec.engine,
        device=found,
        clearance=clearance(spec),
        off_premises=spec.location == "off-prem",
        queued_prefill=spec.queued_prefill,
        shares_prefix=_SHARING.get(spec.engine, False),
        keeps_sequences=spec.engine == "llama.cpp",
        chooses_slots=spec.engine == "llama.cpp" and spec.slots.choose,
        saves_slots=spec.engine == "llama.cpp" and spec.slots.choose and spec.slots.save,
        context_cap=spec.context,
        one_model=spec.one_model,
        headroom=UNIFIED_HEADROOM if found.budget <= UNIFIED_HEADROOM else HEADROOM,
    )


def compile_policy(policy: Policy, version: int = 0) -> Plan:
    """The plan that a policy means."""
    classes = {
        name: ClassPolicy(name, c.weight, c.kv_ceiling, c.sheddable, c.context, c.spared)
        for name, c in policy.classes.items()
    }
    classes.setdefault("default", ClassPolicy("default"))
    keys = policy.auth.keys if isinstance(policy.auth, AuthSpec) else ()
    return Plan(
        backends=tuple(backend(spec, policy.catalogue.catalogue) for spec in policy.backends),
        routes={spec.name: _route(spec) for spec in policy.models},
        classes=classes,
        queue=QueueLimits(
            policy.queue.length,
            policy.queue.wait,
            policy.queue.aging,
            tokens=policy.queue.tokens,
            work=policy.queue.work,
        ),
        costs=RoutingCosts(
            harm=policy.routing.harm,
            move_share=policy.routing.move_penalty.share,
            move_floor=policy.routing.move_penalty.floor,
        ),
        retry=RetryPolicy(attempts=policy.retry.attempts, budget=policy.retry.budget, hedge=policy.retry.hedge),
        breaker=_breaker(policy.health.breaker),
        reserve=policy.admission.reserve,
        pressure=Pressure(policy.admission.pressure.free, policy.admission.pressure.context),
        default_label=DEFAULT_LABEL,
        version=version,
        clients={spec.name: _limits(spec.limits) for spec in keys},
    )


def _limits(spec: KeyLimits) -> ClientLimits:
    rates = {Quota.REQUESTS: spec.requests, Quota.TOKENS: spec.tokens, Quota.KV_SECONDS: spec.kv_seconds}
    return ClientLimits(spec.running, {quota: rate for quota, rate in rates.items() if rate is not None})


def _breaker(spec: BreakerSpec) -> Breaker:
    return Breaker(spec.failures, spec.open, min(_GROWTH * spec.open, _LONGEST_REST), spec.trials)


def _route(spec: RouteSpec) -> Route:
    return Route(
        name=spec.name,
        serves=spec.serves,
        fallback=spec.fallback,
        consent=Consent[spec.consent.upper()],
        context=spec.context,
        output_default=spec.output.default,
        output_ceiling=spec.output.ceiling,
        fit=spec.output.fit,
        klass=spec.klass,
        label=Label.parse(spec.data),
        ttft=spec.slo.ttft,
        ttft_per_token=spec.slo.ttft_per_1k / 1000,
        sheds=spec.slo.shed,
        tpot=spec.slo.tpot,
        resumes=spec.continuation,
        rewrites=tuple((each.match, each.put) for each in spec.rewrite),
    )
