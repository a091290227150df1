"""From a decision's no to an error that tells a person which limit, which estimate, and what to do next."""

from __future__ import annotations

from collections.abc import Callable

from gateway.core.bounds import SENTENCES as BOUNDS
from gateway.core.decision import Candidate, Decision, Verdict
from gateway.core.plan import Plan
from gateway.core.reasons import SENTENCES, Reason
from gateway.core.request import Request
from gateway.errors import (
    ContextTooLong,
    Forbidden,
    GatewayError,
    MalformedRequest,
    NotOffered,
    OverQuota,
    Saturated,
    Unavailable,
    UnknownModel,
)
from gateway.wire.quota_words import over_quota
from gateway.wire.surfaces import SURFACES

__all__ = ["previous_not_found", "prompt_member", "refusal", "shutting_down", "unknown_model"]


def refusal(request: Request, decision: Decision, plan: Plan) -> GatewayError:
    """Return what to raise for this decision; its message holds names and numbers, never prompt text."""
    make = _MAKERS.get(decision.reason, _unavailable)
    error = make(request, decision, plan)
    error.reason = decision.reason
    error.decision_id = request.id
    if error.retry_after is None:
        error.retry_after = decision.retry_after
    return error


def shutting_down() -> Unavailable:
    """What a request is told that can't be served any more."""
    return Unavailable("the gateway is shutting down", reason=Reason.SHUTTING_DOWN, retry_after=5)


def unknown_model(model: str, known: tuple[str, ...]) -> UnknownModel:
    """Name the models that the caller may use instead."""
    shown = ", ".join(known[:20]) or "none"
    return UnknownModel(f"The model '{_short(model)}' does not exist here. Models you can use: {shown}.", param="model")


def _unknown(request: Request, _decision: Decision, plan: Plan) -> GatewayError:
    return unknown_model(request.model, tuple(plan.routes))


def _context(request: Request, decision: Decision, _plan: Plan) -> GatewayError:
    estimate = max(request.estimates.values(), key=lambda each: each.prompt, default=None)
    limit, bound = decision.limit or 0, decision.bound
    whose = f" ({BOUNDS[bound]})" if bound is not None else ""
    told = f"about {estimate.prompt} tokens ({estimate.described})" if estimate is not None else "longer"
    more = (decision.needed or 0) - (estimate.prompt if estimate is not None else 0)
    output = f", and {more} more are needed for an answer" if more > 0 else ""
    return ContextTooLong(
        f"This model's maximum context length is {limit} tokens{whose}. However, your messages are {told}{output}. "
        "Please reduce the length of the messages, or use a model with a larger context.",
        param=prompt_member(request.surface),
    )


def prompt_member(surface: str) -> str:
    """The member of a surface that holds what is asked, and so is at fault when it is too long."""
    known = SURFACES.get(surface)
    return "messages" if known is None else known.prompt


def _saturated(request: Request, decision: Decision, plan: Plan) -> GatewayError:
    where = _full(decision)
    if decision.reason is Reason.QUEUE_FULL:
        queue = f"{plan.queue.length} requests for '{_short(request.model)}' already wait"
        return Saturated(
            f"Every backend is busy and the queue is full: {queue}.{where} {_later(decision)}", code="queue_full"
        )
    waited = decision.now - request.arrival
    if decision.reason is Reason.DEADLINE:
        return Saturated(f"{_missed(request, plan)}{where} {_later(decision)}", code="deadline")
    return Saturated(
        f"No place freed up within {waited:.0f} s (limit {plan.queue.wait:g} s).{where} {_later(decision)}",
        code="queue_timeout",
    )


def _missed(request: Request, plan: Plan) -> str:
    route, estimate = plan.routes.get(request.model), next(iter(request.estimates.values()), None)
    goal = route.goal_of(request) if route is not None and route.sheds else None
    if goal is None or estimate is None:
        return "The first token can't come before this request's deadline."
    return (
        f"No backend can give the first token within {goal:.1f} s, the goal of '{_short(request.model)}' for a prompt "
        f"of about {estimate.prompt} tokens."
    )


def _resting(request: Request, decision: Decision, _plan: Plan) -> GatewayError:
    busy = ", ".join(c.backend for c in decision.trace.candidates if c.reason is Reason.RESTING)
    return Saturated(
        f"Every backend that works for '{_short(request.model)}' is busy and asked for a longer pause than this "
        f"request may wait ({busy}). {_later(decision)}",
        code="engine_busy",
    )


def _unavailable(request: Request, decision: Decision, _plan: Plan) -> GatewayError:
    told = (c for c in decision.trace.candidates if c.reason is not None and c.reason not in _NOBODYS_BUSINESS)
    states = "; ".join(f"{c.backend} {SENTENCES[c.reason]}" for c in told if c.reason is not None)
    return Unavailable(
        f"No backend that may serve '{_short(request.model)}' is working right now{f': {states}' if states else ''}. "
        f"{_later(decision)}"
    )


def _boundary(request: Request, _decision: Decision, _plan: Plan) -> GatewayError:
    label = request.label.name.lower()
    return Forbidden(
        f"This request is labelled '{label}', and no backend for '{_short(request.model)}' is cleared for it. "
        "Use another model, or ask an administrator to clear a backend.",
        code="outside_data_boundary",
    )


def _ability(request: Request, _decision: Decision, _plan: Plan) -> GatewayError:
    needs = ", ".join(sorted(request.needs))
    return MalformedRequest(
        f"No backend for '{_short(request.model)}' offers what this request needs ({needs}).", code="missing_ability"
    )


def _surface(request: Request, _decision: Decision, _plan: Plan) -> GatewayError:
    known = SURFACES.get(request.surface)
    noun = known.noun if known is not None else request.surface
    where = f"No backend for '{_short(request.model)}' offers {noun}"
    if not request.lost:
        return NotOffered(f"{where}.", param="model")
    hindrance = ", ".join(_short(path) for path in request.lost[:5])
    return MalformedRequest(
        f"{where} itself, and a translation to chat completions has no place for: {hindrance}. Leave that out, or use "
        "another model.",
        param=_short(request.lost[0]),
        code=NotOffered.code,
    )


def _kept_elsewhere(_request: Request, _decision: Decision, _plan: Plan) -> GatewayError:
    return previous_not_found()


def previous_not_found() -> MalformedRequest:
    """Tell that the stored answer which a request goes on from is not there, or not the caller's."""
    return MalformedRequest(
        "The previous response is not kept by any backend that works for this model. Send the whole conversation as "
        "input, and leave out previous_response_id.",
        param="previous_response_id",
        code="previous_response_not_found",
    )


def _quota(request: Request, decision: Decision, _plan: Plan) -> GatewayError:
    return OverQuota(f"{over_quota(request.client, decision.quota)} {_later(decision)}")


def _spent(request: Request, decision: Decision, _plan: Plan) -> GatewayError:
    tried = ", ".join(sorted(request.tried))
    return Unavailable(f"Every allowed attempt failed (tried: {tried}). {_later(decision)}", code="retries_spent")


def _full(decision: Decision) -> str:
    """What each working backend is short of, in numbers."""
    parts = [_shortage(c) for c in decision.trace.candidates if c.reason in _SHORTAGES]
    return f" Now: {'; '.join(parts)}." if parts else ""


_NOBODYS_BUSINESS = (Reason.NOT_SERVED, Reason.OUTSIDE_BOUNDARY)
"""Says how the fleet is laid out, and not what is wrong."""
_SHORTAGES = (
    Reason.KV_FULL,
    Reason.SLOTS_FULL,
    Reason.TPOT_LIMIT,
    Reason.LEARNED_LIMIT,
    Reason.DECODE_PACE,
    Reason.PREFILL_BACKLOG,
    Reason.CLASS_CEILING,
    Reason.KV_SCARCE,
    Reason.OTHER_MODEL,
    Reason.PREFIX_IN_PREFILL,
    Reason.RESTING,
    Reason.LOADING,
)


def _shortage(candidate: Candidate) -> str:
    text = f"{candidate.backend} {SENTENCES[candidate.reason]}" if candidate.reason is not None else candidate.backend
    if candidate.limit is not None and candidate.needed is not None:
        text += f" (needs {candidate.needed:,.6g}, limit {candidate.limit:,.6g})"
    return text


def _later(decision: Decision) -> str:
    if decision.retry_after is None:
        return "Please try again later." if decision.verdict in (Verdict.SHED, Verdict.REJECT) else ""
    return f"Please try again in {max(1, round(decision.retry_after))} s."


def _short(name: str) -> str:
    """A client's own string, bounded, for use in a message."""
    return name if len(name) <= 100 else name[:97] + "..."


_MAKERS: dict[Reason, Callable[[Request, Decision, Plan], GatewayError]] = {
    Reason.UNKNOWN_MODEL: _unknown,
    Reason.CONTEXT_TOO_LONG: _context,
    Reason.QUEUE_FULL: _saturated,
    Reason.QUEUE_TIMEOUT: _saturated,
    Reason.DEADLINE: _saturated,
    Reason.RESTING: _resting,
    Reason.OUTSIDE_BOUNDARY: _boundary,
    Reason.MISSING_ABILITY: _ability,
    Reason.SURFACE_NOT_OFFERED: _surface,
    Reason.NOT_THE_KEEPER: _kept_elsewhere,
    Reason.OVER_QUOTA: _quota,
    Reason.RETRIES_SPENT: _spent,
}
