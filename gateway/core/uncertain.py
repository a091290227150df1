"""Whether a decision hangs on how many tokens a prompt really has, so that they are worth counting."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

from gateway.core.admission import usable_pool
from gateway.core.boundary import within
from gateway.core.demand import Demand, Demands
from gateway.core.fallback import tiers
from gateway.core.plan import Plan, Route
from gateway.core.request import Request
from gateway.core.snapshot import BackendView, Health, Snapshot

__all__ = ["Stake", "at_stake", "with_count"]

_HOPELESS = 32
"""A prompt whose low side is so many times the limit is not counted. Estimates are most too high for runs of one sign:
a token holds 16 to 32 of them."""
_SERVING = frozenset((Health.UP, Health.TRIAL, Health.LOADING, Health.UNKNOWN))


class Stake(IntEnum):
    """What a wrong estimate would cost."""

    NOTHING = 0
    """Whatever the prompt has, the decision is the same."""
    CUT = 1
    """Its output limit is lowered, which need not be or would be less by another count."""
    OVERFLOW = 2
    """It may be too long for a backend that it is sent to."""
    REFUSAL = 3
    """It is refused everywhere by its estimate."""


def at_stake(plan: Plan, request: Request, route: Route, snapshot: Snapshot) -> tuple[str, Stake]:
    """The model whose tokens should be counted, and what hangs on it.

    The first of the route that a backend serves which may see the request; later ones stand in for backends that fail.
    """
    label = max(request.label, route.label)
    demands = Demands(plan, request, route)
    for model in tiers(route, request):
        stakes = [
            _stake(request, route, view, demands.on(view, offer), model_window=offer.window)
            for view in snapshot.views
            if (offer := view.offer(model)) is not None
            and within(label, view.backend.clearance)
            and view.health in _SERVING
        ]
        if stakes:
            return model, _of_all(stakes)
    return route.serves, Stake.NOTHING


def _of_all(stakes: list[Stake]) -> Stake:
    """A refusal only where all refuse; else the worst of the others."""
    return max((stake for stake in stakes if stake is not Stake.REFUSAL), default=Stake.REFUSAL)


def _stake(request: Request, route: Route, view: BackendView, demand: Demand, *, model_window: int) -> Stake:
    estimate, window, floor = demand.estimate, demand.window, demand.floor
    if estimate.tier == "C":
        return Stake.NOTHING
    low, high = demand.low, estimate.prompt_most
    wanted = _wanted(request, route)
    output = wanted if wanted is not None and request.max_tokens is not None and route.fit == "refuse" else floor
    refused = _against(window, low + output, high + output)
    if view.pool > 0:
        n = demand.sequences
        prompts = 1 if view.backend.shares_prefix else n
        refused = max(refused, _against(usable_pool(view), low * prompts + floor * n, high * prompts + floor * n))
    if refused is not Stake.NOTHING:
        hopeless = low > _HOPELESS * window
        return Stake.NOTHING if hopeless else refused
    if wanted is None:
        # Where nothing is sent the engine gives what is left; else it is told how much that is.
        return Stake.CUT if window < model_window and window - high < estimate.output_high else Stake.NOTHING
    cut = low + wanted <= window < high + wanted or window - high < min(wanted, estimate.output_high)
    return Stake.CUT if cut else Stake.NOTHING


def _against(limit: int, low: int, high: int) -> Stake:
    if low > limit:
        return Stake.REFUSAL
    return Stake.OVERFLOW if high > limit else Stake.NOTHING


def _wanted(request: Request, route: Route) -> int | None:
    """The output limit that the client or the route names, for one choice."""
    wanted = request.max_tokens if request.max_tokens is not None else route.output_default
    ceiling = route.output_ceiling
    return ceiling if ceiling is not None and (wanted is None or ceiling < wanted) else wanted


def with_count(request: Request, model: str, tokens: int, spread: int = 0) -> Request:
    """The request with so many tokens counted in its prompt, by that model's tokenizer.

    `spread`: how far that may be off, in tokens; it stays an estimate unless that is 0.
    """
    known = request.estimates.get(model)
    if known is None:
        return request
    tier = known.tier if spread else "C"
    exact = replace(
        known, prompt=tokens, prompt_high=tokens + spread, tier=tier, prompt_floor=None, prompt_ceiling=None
    )
    return replace(request, estimates={**request.estimates, model: exact})
