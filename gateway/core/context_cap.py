"""How long one request may be on one backend, prompt and output together, and whose limit that is."""

from __future__ import annotations

from gateway.core.backend import Offer
from gateway.core.bounds import Bound
from gateway.core.plan import ClassPolicy, Plan, Route
from gateway.core.request import Request
from gateway.core.snapshot import BackendView

__all__ = ["narrowest", "window_of"]


def narrowest(key: int | None, klass: ClassPolicy) -> tuple[int | None, Bound]:
    """The cap, in tokens, that a request carries wherever it goes, and whether its key or its class set it."""
    if klass.context is not None and (key is None or klass.context < key):
        return klass.context, Bound.CLASS
    return key, Bound.KEY


def window_of(view: BackendView, offer: Offer, route: Route, plan: Plan, request: Request) -> tuple[int, Bound]:
    """Tokens that prompt and output together may have there: the narrowest of all caps, and whose it is.

    Reserving the worst case, a request is also kept inside the KV pool.
    """
    window, bound = offer.window, Bound.ENGINE
    cap = view.backend.context_cap
    if cap is not None and cap < window:
        window, bound = cap, Bound.BACKEND
    cap = route.context if isinstance(route.context, int) else None
    if cap is not None and cap < window:
        window, bound = cap, Bound.MODEL
    cap = request.context
    if cap is not None and cap < window:
        window, bound = cap, request.bound
    if plan.reserve == "worst_case" and view.pool > 0:
        room = max(view.pool - view.charge.most, 1)
        if room < window:
            window, bound = room - room % view.block, Bound.POOL
    return window, bound
