"""Whether an answer that broke off in the middle may go on in another engine, and the request for its rest.

Only where the text cannot differ from what the first engine would have gone on to say: the same model in the same
class of number format, one choice, nothing that an engine keeps a state for (a grammar, a tool call, a thought).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gateway.core.backend import Offer
from gateway.core.failure import FailureKind
from gateway.core.plan import Route
from gateway.core.request import Consent, Request
from gateway.core.retrying import No, Retry, RetryBudget
from gateway.core.snapshot import Snapshot

__all__ = ["MOST_RESUMES", "can_break_off", "may_resume", "others", "rest_of", "same_class"]

MOST_RESUMES = 2
"""How often one answer may go on elsewhere: what breaks three engines is likely to be the request."""
_WAIT = 30.0
"""Seconds that the rest of an answer waits for a backend; its client stands in the middle of a sentence."""
_STATEFUL = frozenset(("logprobs", "json_schema"))
_ENGINES_FAULT = frozenset(
    (
        FailureKind.BROKEN,
        FailureKind.TOKEN_GAP,
        FailureKind.SERVER,
        FailureKind.MEMORY,
        # Of an attempt to go on: it never began.
        FailureKind.CONNECT,
        FailureKind.FIRST_TOKEN,
        FailureKind.BUSY,
        FailureKind.LOADING,
        FailureKind.NOT_FOUND,
        FailureKind.NOT_OFFERED,
        FailureKind.NOT_CLEARED,
    )
)


def can_break_off(route: Route, request: Request) -> bool:
    """Whether this request's answer, if it breaks off, can go on elsewhere, as far as is known before it begins."""
    plain = request.n == 1 and not request.shape.json and not request.needs & _STATEFUL
    return route.resumes and request.stream and plain


def may_resume(kind: FailureKind, request: Request, budget: RetryBudget, now: float, *, excused: bool) -> Retry | No:
    """Rule on going on elsewhere after an answer broke off with `kind`; paid from the budget of retries.

    `excused` ones cost nothing: those that ran when their backend died, all of them at once.
    """
    if kind not in _ENGINES_FAULT:
        return No("it is not the engine's fault")
    if request.resumed >= MOST_RESUMES:
        return No("it broke off too often")
    return Retry() if excused or budget.take(now) else No("the retry budget is spent")


def same_class(one: Offer, other: Offer) -> bool:
    """Whether two offers are one model in one class of number format: as many bits a weight, rounded."""
    return one.model == other.model and round(one.weight_bits) == round(other.weight_bits)


def others(snapshot: Snapshot, offer: Offer, able: Iterable[str]) -> frozenset[str]:
    """Names of the backends where an answer of `offer` can't go on; `able`: whose engines can go on with one at all."""
    can = frozenset(able)
    return frozenset(
        view.name
        for view in snapshot.views
        if view.name not in can or not any(same_class(offer, each) for each in view.offers)
    )


def rest_of(request: Request, model: str, given: int, closed: frozenset[str], now: float) -> Request | None:
    """The request for what is left of an answer of which `given` tokens are with the client; None: nothing is left.

    What was given is part of the prompt now, and no other model may go on with it. It is due at once.
    """
    estimate = request.estimates.get(model)
    if estimate is None:
        return None
    left = None if request.max_tokens is None else request.max_tokens - given
    if left is not None and left < 1:
        return None
    read = replace(
        estimate,
        prompt=estimate.prompt + given,
        prompt_high=estimate.prompt_high + given,
        prompt_floor=None if estimate.prompt_floor is None else estimate.prompt_floor + given,
        prompt_ceiling=None if estimate.prompt_ceiling is None else estimate.prompt_ceiling + given,
    )
    return replace(
        request,
        estimates={model: read},
        max_tokens=left,
        consent=Consent.NONE,
        tried=request.tried | closed,
        attempt=request.attempt + 1,
        resumed=request.resumed + 1,
        given=request.given + given,
        arrival=now,
        due=now,
        promised=now,
        deadline=now + _WAIT,
    )
