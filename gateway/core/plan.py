"""The compiled policy: what an operator wrote, as the values that decisions use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gateway.core.backend import Backend
from gateway.core.boundary import Label, within
from gateway.core.quota import ClientLimits
from gateway.core.request import Consent, Request
from gateway.core.snapshot import Health, Snapshot

__all__ = ["Breaker", "ClassPolicy", "Plan", "Pressure", "QueueLimits", "RetryPolicy", "Route", "RoutingCosts"]


@dataclass(frozen=True, slots=True)
class Route:
    """A name that clients use, and the models behind it. Tokens and seconds."""

    name: str
    serves: str
    fallback: tuple[str, ...] = ()
    consent: Consent = Consent.ANY
    """With no declared fallback this never matters; a declared one is the operator's consent unless narrowed."""
    context: int | str | None = None
    """Cap in tokens, or "shortest" | "longest" of the backends; None: longest."""
    output_default: int | None = None
    output_ceiling: int | None = None
    fit: str = "clamp"
    klass: str = "default"
    label: Label = Label.PUBLIC
    ttft: float | None = None
    tpot: float | None = None
    resumes: bool = False
    """Whether an answer that breaks off in the middle may go on in another engine."""
    rewrites: tuple[tuple[str, str], ...] = ()
    """What is taken out of its system prompts: patterns, and what is put there."""
    ttft_per_token: float = 0.0
    """Seconds that each token of a prompt adds to the goal for its first token."""
    sheds: bool = False
    """Whether what can't keep its goal for the first token anywhere is turned away at once."""

    def goal(self, prompt: int) -> float | None:
        """Seconds from arrival in which the first token should come, for a prompt of so many tokens; None: any."""
        return None if self.ttft is None else self.ttft + prompt * self.ttft_per_token

    def goal_of(self, request: Request) -> float | None:
        """The same of a request, by the tokens that it has on the model asked for."""
        estimate = next(iter(request.estimates.values()), None)
        return self.goal(0 if estimate is None else estimate.prompt)

    @property
    def models(self) -> tuple[str, ...]:
        """Model ids in the order they are tried."""
        return (self.serves, *self.fallback)


@dataclass(frozen=True, slots=True)
class ClassPolicy:
    """A class of requests: its share of dispatches and of each KV pool."""

    name: str
    weight: float = 4.0
    kv_ceiling: float = 1.0
    sheddable: bool = True
    context: int | None = None
    """Cap on prompt and output together, in tokens."""
    spared: bool = False
    """Whether its long new prompts are taken even while the fleet's KV cache is nearly full."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """Scarcity of KV cache: less than `free` of it left over all backends of a model, as a share.

    Then a new prompt gets `context` of one backend's pool at most (algorithms 2.7: 15 %, and a quarter).
    """

    free: float = 0.15
    context: float = 0.25


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The gateway's queue, one a model. `length` in requests; `wait` and `aging` in seconds."""

    length: int = 200
    wait: float = 60.0
    aging: float = 15.0
    scan: int = 16
    """How many waiting requests one pump looks at, per model."""
    tokens: int | None = None
    """Tokens, prompt and expected output, that may wait for one model; None: any."""
    work: float | None = None
    """Seconds that the work which waits for one model may take its backends; None: any."""


@dataclass(frozen=True, slots=True)
class RoutingCosts:
    """Weights of the cost terms; seconds and shares (algorithms: harm 0.35, hysteresis 10 % or 150 ms)."""

    harm: float = 0.35
    deadline: float = 3.0
    move_share: float = 0.10
    move_floor: float = 0.15


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts beyond the first. `budget` extra attempts per admitted request, `burst` of them saved up."""

    attempts: int = 2
    budget: float = 0.10
    burst: float = 10.0
    hedge: float = 0.0
    """Second attempts beside late ones, as a share of requests; 0: none."""
    size_limit: int = 32_768
    """Prompt tokens above which a time-out (not a dead backend) is not retried: the work was probably done."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """When repeated failures take a backend out, and how it comes back.

    `open` in seconds, doubling up to `cap`; `trials` answers in a row bring it back. No default rest is longer than
    two minutes: an engine that is well again should be noticed before its users give up.
    """

    failures: int = 3
    open: float = 15.0
    cap: float = 120.0
    trials: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """One policy, whole. Replaced at reload, never changed."""

    backends: tuple[Backend, ...]
    routes: Mapping[str, Route] = field(default_factory=dict)
    """Empty: every discovered model is reachable under its own id."""
    classes: Mapping[str, ClassPolicy] = field(default_factory=lambda: {"default": ClassPolicy("default")})
    queue: QueueLimits = QueueLimits()
    costs: RoutingCosts = RoutingCosts()
    retry: RetryPolicy = RetryPolicy()
    breaker: Breaker = Breaker()
    reserve: str = "expected"
    """expected | worst_case (prompt and the whole output limit, times n)."""
    pressure: Pressure = Pressure()
    default_label: Label = Label.PUBLIC
    """Label of a request on an unnamed route."""
    version: int = 0
    clients: Mapping[str, ClientLimits] = field(default_factory=dict)
    """Limits by client; one that is not there has none."""

    def route(self, model: str, snapshot: Snapshot) -> Route | None:
        """The route of a client's model name, or None when nobody serves it.

        A cap at the shortest window of its backends comes as a number. Without a `models` section each model that a
        backend offers is a route of its own, under any of its names.
        """
        if self.routes:
            route = self.routes.get(model)
            if route is None or route.context != "shortest":
                return route
            return replace(route, context=_shortest(route, snapshot))
        for view in snapshot.views:
            for offer in view.offers:
                if offer.answers_to(model):
                    return Route(name=model, serves=offer.model, label=self.default_label)
        return None


def _shortest(route: Route, snapshot: Snapshot) -> int | None:
    """The window that every backend has that may serve the model of this route, working or not; None when none may."""
    windows = []
    for view in snapshot.views:
        offer = view.offer(route.serves)
        if offer is None or view.health is Health.DRAINING or not within(route.label, view.backend.clearance):
            continue
        cap = view.backend.context_cap
        windows.append(offer.window if cap is None else min(cap, offer.window))
    return min(windows, default=None)
