"""From a request and one backend to its footprint: window, output budget, cached prefix, KV tokens to reserve."""

from __future__ import annotations

from gateway.core.backend import Offer
from gateway.core.footprint import Footprint
from gateway.core.kv.shape import round_up
from gateway.core.plan import Plan, Route
from gateway.core.request import Estimate, Request
from gateway.core.snapshot import BackendView

__all__ = ["FLOOR_OUTPUT", "estimate_of", "floor_output", "footprint_of", "footprint_within", "window_of"]

FLOOR_OUTPUT = 16
"""Output tokens without which an answer is not worth starting."""


def estimate_of(request: Request, offer: Offer) -> Estimate:
    """The request's numbers under that offer's tokenizer; those of the model asked for stand in for missing ones.

    Raises KeyError when the request carries no estimate at all.
    """
    estimates = request.estimates
    estimate = estimates.get(offer.model) or estimates.get(offer.served_as) or estimates.get(request.model)
    if estimate is None:
        if not estimates:
            raise KeyError(f"request {request.id} has no estimate")
        estimate = next(iter(estimates.values()))
    return estimate


def floor_output(request: Request, estimate: Estimate) -> int:
    """Output tokens that must fit beside the prompt: few, and none where none is made (embeddings)."""
    floor = min(FLOOR_OUTPUT, estimate.output_high)
    asked = request.max_tokens
    return floor if asked is None or floor < asked else asked


def window_of(view: BackendView, offer: Offer, route: Route, plan: Plan) -> int:
    """Tokens that prompt and output together may have there: the narrowest of engine, operator's cap and route's cap.

    Reserving the worst case, a request is also kept inside the KV pool.
    """
    window = offer.window
    cap = view.backend.context_cap
    if cap is not None and cap < window:
        window = cap
    cap = route.context if isinstance(route.context, int) else None
    if cap is not None and cap < window:
        window = cap
    if plan.reserve == "worst_case" and 0 < view.pool < window:
        window = view.pool - view.pool % view.block
    return window


def footprint_of(request: Request, view: BackendView, offer: Offer, plan: Plan, route: Route) -> Footprint:
    """What this request needs on that backend, as that offer of it."""
    return footprint_within(
        request, view, offer, plan, route, estimate_of(request, offer), window_of(view, offer, route, plan)
    )


def footprint_within(
    request: Request, view: BackendView, offer: Offer, plan: Plan, route: Route, estimate: Estimate, window: int
) -> Footprint:
    """`footprint_of` with the estimate and the window looked up before."""
    prompt, high, n, block = estimate.prompt, estimate.prompt_high, request.n, view.block
    limit, send, wanted = _budget(request, offer, route, estimate, window)
    whole = plan.reserve == "worst_case" and estimate.output_high > 0
    output = limit if whole else min(estimate.output_high, limit)
    # Not cut by the window: a backend that would cut the answer short is not faster for it.
    mean = estimate.output if wanted is None else min(estimate.output, wanted)
    shares = view.backend.shares_prefix

    hit = request.hits.get(view.backend.name)
    cached = hit.tokens(prompt, block) if hit is not None else 0

    # The engine itself holds no sequence that is longer than its window, however unsure the estimate.
    whole_window = offer.window
    held = min(whole_window, high)
    common = held - held % block if shares and n > 1 else 0
    # With several choices these share the prompt's whole blocks; each has its own from the last, partial one on.
    longest = whole_window - common
    own = held - common
    sequence = round_up(min(own + output, longest), block)
    kv = common + n * sequence
    ceiling = common + n * round_up(min(own + limit, longest), block)
    kv_bytes = offer.kv.bytes(kv) if n == 1 or shares else n * offer.kv.bytes(sequence)
    if 0 < view.pool < kv:
        # A pool that holds the prompt and a short answer is used to its end, not refused.
        kv = view.pool - view.pool % block
    shared = 0
    if shares and hit is not None and hit.pinned:
        pinned = int(prompt * hit.pinned)
        shared = min(cached, pinned - pinned % block, kv - block)
        kv -= shared
        ceiling -= shared
    return Footprint(
        prompt, high, cached, prompt - cached, output * n, mean, send, kv, kv_bytes, n, estimate.tier, shared, ceiling,
    )  # fmt: skip


def _budget(
    request: Request, offer: Offer, route: Route, estimate: Estimate, window: int
) -> tuple[int, int | None, int | None]:
    """Output tokens that one choice may reach, the `max_tokens` to send (None: as the client sent it), what was wanted.

    Measured from the high side of the prompt, since engines refuse a sum that is one token over the window.
    """
    asked = request.max_tokens
    wanted = asked if asked is not None else route.output_default
    ceiling = route.output_ceiling
    if ceiling is not None and (wanted is None or wanted > ceiling):
        wanted = ceiling
    room = window - estimate.prompt_high
    if room < FLOOR_OUTPUT:
        room = max(room, floor_output(request, estimate), 1)
    if wanted is None:
        return room, None if window == offer.window else room, None
    limit = room if wanted > room and (asked is None or route.fit != "refuse") else wanted
    return limit, None if limit == asked else limit, wanted
