"""What a reload changes: who may ask, who serves, and how requests are admitted and routed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from gateway.config.auth import Auth
from gateway.config.backends import BackendSpec, LabelName
from gateway.config.own_catalogue import CatalogueSpec
from gateway.config.rewriting import Rewrite
from gateway.config.sizes import Duration, Number, Share, Tokens, Unreadable, Whole, parse_tokens
from gateway.config.spec import Name, Spec, some

__all__ = [
    "AdmissionSpec",
    "BreakerSpec",
    "ClassSpec",
    "HealthSpec",
    "MovePenalty",
    "OutputSpec",
    "Policy",
    "QueueSpec",
    "RetrySpec",
    "RouteSpec",
    "RoutingSpec",
    "SloSpec",
]


def _cap(value: Any) -> Any:
    if value in ("shortest", "longest"):
        return value
    if not (tokens := parse_tokens(value)):
        raise Unreadable("must be over 0", "")
    return tokens


Cap = Annotated[
    int | str,
    BeforeValidator(_cap),
    WithJsonSchema({"anyOf": [{"enum": ["shortest", "longest"]}, {"type": "integer", "exclusiveMinimum": 0}]}),
]


class OutputSpec(Spec):
    """How long answers may become. Tokens."""

    default: Annotated[Tokens, Field(gt=0)] | None = None
    """Limit of a request that names none."""
    ceiling: Annotated[Tokens, Field(gt=0)] | None = None
    """Largest limit a request may name."""
    fit: Literal["clamp", "refuse"] = "clamp"
    """When the prompt fits the window and prompt plus limit does not: lower the limit, or refuse."""


class SloSpec(Spec):
    """What clients of this model hope for; routing counts lateness against a backend."""

    ttft: Annotated[Duration, Field(gt=0)] | None = None
    """Time to first token."""
    ttft_per_1k: Annotated[Duration, Field(ge=0)] = 0.0
    """Time that every 1,000 tokens of a prompt add to it."""
    tpot: Annotated[Duration, Field(gt=0)] | None = None
    """Time per output token."""
    shed: bool = False
    """Turn away at once, with a time to come back, what no backend can give its first token in that time."""


class RouteSpec(Spec):
    """A model name that clients use, and what answers it."""

    name: Name
    """The name that clients send as `model`."""
    serves: Name
    """The model behind it: an id that a backend serves."""
    fallback: tuple[Name, ...] = ()
    """Other models, in the order they are tried when the first has no working backend."""
    consent: Literal["none", "quant", "any"] = "any"
    """How far a fallback may go: not at all, to other number formats of the same weights, or to any model listed."""
    context: Cap | None = None
    """Cap on prompt and output together, in tokens; or the shortest or longest window of its backends."""
    output: OutputSpec = OutputSpec()
    """How long answers may become."""
    klass: Annotated[Name, Field(alias="class")] = "default"
    """Class of its requests."""
    data: LabelName = "internal"
    """How sensitive its requests are: only backends cleared for at least this see them."""
    slo: SloSpec = SloSpec()
    """What clients of this model hope for."""
    continuation: bool = False
    """Whether a streamed answer whose engine fails in the middle goes on in another that serves the same model in the
    same class of number format. Each answer's text so far is then held until it ends."""
    rewrite: tuple[Rewrite, ...] = ()
    """What to take out of system prompts before they are sent on, so that caches can hold them; nothing by default.
    claude-code-attribution: the line with a checksum with which Claude Code begins."""


class ClassSpec(Spec):
    """A class of requests."""

    weight: Annotated[Number, Field(ge=0)] = 4.0
    """Its share of dispatches beside other classes; a class of weight 0 is served when no other waits."""
    kv_ceiling: Annotated[Share, Field(gt=0)] = 1.0
    """The part of each KV cache that it and classes below it may fill."""
    sheddable: bool = True
    """Whether it may be turned away early when the wait would be too long."""
    context: Annotated[Tokens, Field(gt=0)] | None = None
    """Cap on prompt and output together, in tokens, of each of its requests."""
    spared: bool = False
    """Whether its long new prompts are taken even while the KV cache of the fleet is nearly full; see
    admission.pressure."""


class MovePenalty(Spec):
    """What leaving the backend that holds a session costs, so that sessions don't wander for nothing."""

    share: Share = 0.10
    """Share of the predicted seconds that a move must save."""
    floor: Annotated[Duration, Field(ge=0)] = 0.15
    """Seconds that a move must save at least."""


class RoutingSpec(Spec):
    """Weights of the cost terms; the terms themselves are seconds."""

    harm: Annotated[Number, Field(ge=0, le=10)] = 0.35
    """How much the seconds that a request costs others count beside its own."""
    move_penalty: MovePenalty = MovePenalty()
    """What leaving a session's backend costs."""


class PressureSpec(Spec):
    """When KV cache is scarce: conversations that are cached somewhere go on, long new ones wait."""

    free: Share = 0.15
    """Share of the KV cache of all backends of a model below which it is scarce; 0: never."""
    context: Annotated[Share, Field(gt=0)] = 0.25
    """The part of one backend's KV cache that a new prompt may then take there; a longer one waits."""


class AdmissionSpec(Spec):
    """How much of the KV cache a request is given."""

    reserve: Literal["expected", "worst_case"] = "expected"
    """expected: prompt and likely output; worst_case: prompt and the whole output limit, times n."""
    pressure: PressureSpec = PressureSpec()
    """What happens while KV cache is scarce."""


class QueueSpec(Spec):
    """The queue that each model has in the gateway."""

    length: Annotated[Whole, Field(gt=0, le=100_000)] = 200
    """Requests that may wait; the next one is refused at once."""
    wait: Annotated[Duration, Field(gt=0)] = 60.0
    """The longest a request waits before it is refused."""
    aging: Annotated[Duration, Field(gt=0)] = 15.0
    """The longest that a request which would fit is passed over by smaller ones."""
    tokens: Annotated[Tokens, Field(gt=0)] | None = None
    """Tokens, prompts and expected answers, that may wait; left out: any number."""
    work: Annotated[Duration, Field(gt=0)] | None = None
    """What waits may take the backends so long to serve; the next one is refused at once. Left out: `wait` decides."""


class BreakerSpec(Spec):
    """When a failing backend is left alone."""

    failures: Annotated[Whole, Field(gt=0)] = 3
    """Failures in a row that open the breaker."""
    open: Annotated[Duration, Field(gt=0)] = 15.0
    """How long it rests after the first time. Doubles each time after, up to 8 times this and at most 2 minutes; not at
    all where requests may use no other backend."""
    trials: Annotated[Whole, Field(gt=0)] = 1
    """Requests let through at once to see whether it works again."""


class HealthSpec(Spec):
    """How backends are watched."""

    probe: Annotated[Duration, Field(ge=0.1)] = 5.0
    """Seconds between two looks at a backend; engines that suffer from polling are asked less often."""
    breaker: BreakerSpec = BreakerSpec()
    """When a failing backend is left alone."""
    canary: bool = False
    """Whether a backend that rests after failures is asked for one token, in words of the gateway's own, until it
    answers: then no client's request is the first to be sent there. Not for backends off premises."""


class RetrySpec(Spec):
    """Attempts on another backend, before the first byte of an answer."""

    attempts: Annotated[Whole, Field(ge=0, le=10)] = 2
    """Attempts beyond the first; 0: none."""
    budget: Share = 0.10
    """Extra attempts for all requests together, as a share of the requests admitted."""
    hedge: Share = 0.0
    """Streams of class `interactive` that get no first token in time are sent to a second backend as well, for at most
    this share of all requests; whichever answers first is shown, the other cancelled. 0: none."""


class Policy(Spec):
    """The sections that a reload changes."""

    auth: Auth | None = None
    """Client keys; `none` says that anybody who reaches the port may ask. Left out: loopback only."""
    backends: Annotated[tuple[BackendSpec, ...], AfterValidator(some), Field(json_schema_extra={"minItems": 1})]
    """The engines behind this gateway."""
    models: tuple[RouteSpec, ...] = ()
    """Names that clients use; left out: every model that a backend serves, under its own id."""
    classes: dict[Name, ClassSpec] = Field(default_factory=dict)
    """Classes of requests, by name; `default` exists always."""
    routing: RoutingSpec = RoutingSpec()
    """How a backend is chosen."""
    admission: AdmissionSpec = AdmissionSpec()
    """How much KV cache a request is given."""
    queue: QueueSpec = QueueSpec()
    """How requests wait."""
    health: HealthSpec = HealthSpec()
    """How backends are watched."""
    retry: RetrySpec = RetrySpec()
    """Attempts on another backend."""
    catalogue: CatalogueSpec = CatalogueSpec()
    """Models and devices beside those that come with the program."""
