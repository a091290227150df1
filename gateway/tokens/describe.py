"""Policy and estimators make a decidable request of a measured body: names, class, label, tokens.

No text goes further.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gateway.core.admission import class_named
from gateway.core.boundary import Label
from gateway.core.context_cap import narrowest
from gateway.core.continuing import can_break_off
from gateway.core.estimators.answer_shape import AnswerShape
from gateway.core.experience import Experience
from gateway.core.plan import Plan, Route
from gateway.core.request import Consent, Estimate, Request
from gateway.core.snapshot import Health, Snapshot
from gateway.errors import Forbidden, MalformedRequest, Unavailable
from gateway.tokens.measure import Measured
from gateway.wire.chat_request import ChatRequest
from gateway.wire.inbound import Client
from gateway.wire.ollama.names import plain
from gateway.wire.refusal import unknown_model
from gateway.wire.session_hint import session_hint
from gateway.wire.surfaces import SURFACES, Kind
from gateway.wire.translations import acceptable

__all__ = ["describe", "route_of", "visible"]

HARD_NEEDS = frozenset(("vision", "audio"))


def route_of(model: str, client: Client, plan: Plan, snapshot: Snapshot) -> Route:
    """Return the route of a client's model name.

    Raises UnknownModel, Forbidden when this key may not use it, and Unavailable while an engine that might serve it
    has not been seen yet.
    """
    if not model:
        model = _only_one(visible(client, plan, snapshot))
    if model.endswith(":latest") and plan.route(model, snapshot) is None:
        model = plain(model)
    if client.models is not None and model not in client.models:
        if plan.route(model, snapshot) is None:
            raise unknown_model(model, visible(client, plan, snapshot))
        raise Forbidden(f"The key '{client.name}' may not use the model '{model}'.", param="model")
    route = plan.route(model, snapshot)
    if route is not None:
        return route
    if not plan.routes and _may_still_turn_up(snapshot):
        raise Unavailable(
            "No engine that has been reached so far serves this model, and some have not answered yet.",
            code="model_not_known_yet",
            param="model",
            retry_after=5,
        )
    raise unknown_model(model, visible(client, plan, snapshot))


def _only_one(names: tuple[str, ...]) -> str:
    """The model of a request that names none, as engines of one model allow."""
    if len(names) != 1:
        raise MalformedRequest(
            f"model is required here; one of: {', '.join(names[:20]) or 'none'}",
            param="model",
            code="missing_required_parameter",
        )
    return names[0]


def _may_still_turn_up(snapshot: Snapshot) -> bool:
    """Whether an engine whose models are not known yet is being asked, or none has ever said what it serves."""
    unseen = [view for view in snapshot.views if not view.offers]
    asked = any(view.health in (Health.UNKNOWN, Health.LOADING) for view in unseen)
    return asked or len(unseen) == len(snapshot.views)


def visible(client: Client, plan: Plan, snapshot: Snapshot) -> tuple[str, ...]:
    """The model names that this client may use, in a stable order."""
    names: dict[str, None] = dict.fromkeys(plan.routes)
    if not names:
        for view in snapshot.views:
            for offer in view.offers:
                names.setdefault(offer.served_as)
    return tuple(name for name in names if client.models is None or name in client.models)


def describe(
    request_id: str,
    measured: Measured,
    client: Client,
    route: Route,
    plan: Plan,
    experience: Experience,
    headers: Mapping[str, str],
    snapshot: Snapshot,
) -> Request:
    """Return the request as numbers.

    Raises MalformedRequest on an odd header.
    """
    chat = measured.chat
    decodes = SURFACES[chat.surface].kind is Kind.GENERATION
    limit = _output_limit(chat.max_tokens, route) if decodes else chat.max_tokens
    estimates = {
        model: _estimate(model, measured, client, route, experience, limit, _window(model, snapshot))
        for model in route.models
    }
    goal = route.goal(estimates[route.serves].prompt)
    klass = client.klass or route.klass
    consent, allowed = _consent(route, plan, headers)
    context, bound = narrowest(client.context, class_named(plan, klass))
    hint, (placement, thread) = session_hint(headers, chat.session), measured.opening
    request = Request(
        id=request_id,
        model=route.name,
        client=client.name,
        klass=klass,
        label=_label(client, route, headers),
        arrival=snapshot.now,
        deadline=snapshot.now + plan.queue.wait,
        due=snapshot.now + (plan.queue.aging if goal is None else goal),
        estimates=estimates,
        max_tokens=chat.max_tokens,
        n=chat.n * chat.prompts if decodes else 1,
        stream=chat.stream,
        needs=_needs(chat.needs, route, snapshot),
        consent=consent,
        allowed=allowed,
        session=hint,
        surface=chat.surface,
        surfaces=acceptable(chat),
        lost=chat.lost,
        context=context,
        bound=bound,
        shape=_shape(chat),
        media=chat.media,
        placement=placement,
        thread=thread,
        home=experience.sessions.home(client.name, hint, thread),
    )
    return replace(request, resumes=True) if can_break_off(route, request) and _may_go_on(headers) else request


def _output_limit(asked: int | None, route: Route) -> int | None:
    """Output tokens that one choice may have by the client's word and the route's."""
    wanted = asked if asked is not None else route.output_default
    ceiling = route.output_ceiling
    return ceiling if ceiling is not None and (wanted is None or ceiling < wanted) else wanted


def _window(model: str, snapshot: Snapshot) -> int | None:
    """The widest window that any backend has for a model; None while no one offers it."""
    offers = (offer for view in snapshot.views if (offer := view.offer(model)) is not None)
    return max((offer.window for offer in offers), default=None)


def _shape(chat: ChatRequest) -> AnswerShape:
    return AnswerShape(chat.tools > 0, chat.reasoning, chat.json)


def _estimate(
    model: str,
    measured: Measured,
    client: Client,
    route: Route,
    experience: Experience,
    limit: int | None,
    window: int | None,
) -> Estimate:
    chat = measured.chat
    estimate = experience.estimate(
        model,
        client.name,
        measured.counts,
        _shape(chat),
        route=route.name,
        klass=client.klass or route.klass,
        chain=measured.chain,
        exact=chat.prompt_tokens,
        limit=limit,
        window=window,
    )
    if estimate.tier == "A":
        estimate = replace(estimate, prompt_ceiling=experience.tokens.most(model, client.name, measured.counts))
    if chat.media and estimate.tier != "C":
        tokens, high = experience.media.estimate(model, client.name, chat.media)
        estimate = replace(estimate, prompt=estimate.prompt + tokens, prompt_high=estimate.prompt_high + high)
    return estimate if SURFACES[chat.surface].kind is Kind.GENERATION else _each(estimate, chat)


def _each(estimate: Estimate, chat: ChatRequest) -> Estimate:
    """One input of many: engines take them one after another, and the window is each one's own.

    What an engine transcribes or draws is no prompt of tokens at all, and none too long for its window.
    """
    if SURFACES[chat.surface].kind is Kind.FORM:
        return Estimate(1, 1, 0, 0, "C")
    prompts = max(1, chat.prompts)
    prompt, high = max(1, estimate.prompt // prompts), max(1, estimate.prompt_high // prompts)
    floor = None if estimate.prompt_floor is None else estimate.prompt_floor // prompts
    return Estimate(prompt, high, 0, 0, estimate.tier, floor)


def _needs(asked: frozenset[str], route: Route, snapshot: Snapshot) -> frozenset[str]:
    """What a backend must be able to do: to see or hear what is sent, and else what at least one of them can.

    An engine without a template for tools answers a request with tools in plain text; that is its answer, not a
    refusal of ours.
    """
    offers = (offer for view in snapshot.views for model in route.models if (offer := view.offer(model)) is not None)
    offered = frozenset[str]().union(*(offer.abilities for offer in offers))
    return frozenset(need for need in asked if need in HARD_NEEDS or need in offered)


def _label(client: Client, route: Route, headers: Mapping[str, str]) -> Label:
    """The highest of the route's, the key's and the request's own label: a header may raise it, never lower it."""
    label = max(route.label, client.label if client.label is not None else Label.PUBLIC)
    asked = headers.get("x-data-label")
    if asked is None:
        return label
    try:
        return max(label, Label.parse(asked))
    except ValueError as error:
        raise MalformedRequest(f"x-data-label: {error}", param="x-data-label") from None


def _may_go_on(headers: Mapping[str, str]) -> bool:
    """Whether the caller lets an answer that breaks off go on in another engine."""
    said = headers.get("x-allow-continuation", "yes").strip().lower()
    if said not in ("yes", "no"):
        raise MalformedRequest("x-allow-continuation is yes or no", param="x-allow-continuation")
    return said == "yes"


def _consent(route: Route, plan: Plan, headers: Mapping[str, str]) -> tuple[Consent, frozenset[str] | None]:
    """A caller may narrow the route's consent, or name the models that it lets stand in, not widen it."""
    asked = headers.get("x-allow-fallback")
    if asked is None:
        return route.consent, None
    try:
        return min(route.consent, Consent[asked.strip().upper()]), None
    except KeyError:
        named = {name.strip() for name in asked.split(",")}
    if named.isdisjoint(model for each in plan.routes.values() for model in each.models):
        raise MalformedRequest(
            "x-allow-fallback is none, quant, any, or names of models that may stand in, with commas between them",
            param="x-allow-fallback",
        )
    return route.consent, frozenset(model for model in route.fallback if model in named)
