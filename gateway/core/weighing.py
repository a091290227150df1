"""The scratch objects of one decision: the request's side, and one backend as it is being weighed.

Mutable and short-lived, unlike everything else here: filters note what they found, and the numbers that several costs
need are worked out once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from gateway.core.admission import class_of, is_aged, is_scarce
from gateway.core.decision import Candidate
from gateway.core.demand import Demands
from gateway.core.prefix.leaders import LEAST_AWAITED
from gateway.core.reserving import footprint_of, held_on

if TYPE_CHECKING:
    from gateway.core.backend import Offer
    from gateway.core.boundary import Label
    from gateway.core.demand import Demand
    from gateway.core.footprint import Footprint
    from gateway.core.plan import Plan, Route
    from gateway.core.reasons import Reason
    from gateway.core.request import Hit, Request
    from gateway.core.snapshot import BackendView

__all__ = ["RHO_TAU", "Ask", "Costs", "Weighing"]

Costs: TypeAlias = "Sequence[tuple[str, Callable[[Weighing], float]]]"
"""Terms of a cost: what the trace calls each, and the function that gives its seconds."""

RHO_TAU = 20.0
_RHO_CAP = 0.85
"""Interference of prefill with decode: its share of the last 20 s, at most 0.85 (found by simulation)."""
_MEDIAN = 1 / 3
"""The median of a Poisson count lies so far below its mean."""
_CHUNK = 2048
"""Tokens of a mixed step (the usual chunked-prefill budget); decoding sequences take their share from a prefill."""
_AWAITED_SHARE = 0.5
"""Part of a prompt that must be in prefill for another request to be waited for."""
_STUCK = 8.0
"""A prefill that is late by so many times the seconds that it should have taken has no advance over a new one."""
_HOME_SHARE = 0.05
"""Part of the prompt that must be resident before a backend counts as its home."""


class Ask:
    """The request's side: what is the same for every candidate."""

    __slots__ = (
        "_scarce", "aged", "demands", "goal", "home", "klass", "label", "now", "plan", "request", "resident", "route",
        "seat", "views", "waited",
    )  # fmt: skip

    def __init__(
        self, plan: Plan, request: Request, route: Route, now: float, views: Sequence[BackendView] = ()
    ) -> None:
        self.plan = plan
        self.request = request
        self.route = route
        self.now = now
        self.views = views
        self._scarce: bool | None = None
        self.waited = now - request.arrival
        self.goal = route.goal_of(request)
        """Seconds from arrival in which the first token should come; None: any."""
        self.klass = class_of(plan, request)
        self.aged = is_aged(plan, request, now)
        self.label: Label = max(request.label, route.label)
        best = 0.0
        for hit in request.hits.values():
            expected = hit.share * hit.trust
            if expected > best:
                best = expected
        self.resident = best
        """Part of the prompt that is cached somewhere."""
        self.home: float | None = 0.95 * best if best > _HOME_SHARE else None
        """Part of the prompt that a home of it holds; None when no backend holds a notable part."""
        seat = request.hits.get(request.home) if request.home is not None else None
        self.seat = request.home if seat is not None and seat.share * seat.trust >= (self.home or 1.0) else None
        """The one of its homes where its conversation was last; None where that holds it no more, or none is told."""
        self.demands = Demands(plan, request, route)

    @property
    def scarce(self) -> bool:
        """Whether the backends that serve the model asked for have little KV cache left, all together."""
        if self._scarce is None:
            self._scarce = is_scarce(self.plan, self.views, self.route.serves)
        return self._scarce


class Weighing:
    """One backend for one tier: first offer and demand, then what is cached and to reserve, then seconds.

    `cached`: tokens of the prompt expected from its cache; `shared`: tokens of it that running requests hold; `kv`:
    tokens to reserve. `live`: it works and could serve this, now or soon. `reason`, `limit` and `needed`: why it fell
    out. `wait`: expected seconds until it has room (0: it is open). `prefill`: seconds to read this prompt there,
    running decodes included; `shared_steps`: of their steps meanwhile. `ttft`: seconds from now to the first token;
    `completion`: to the last. `step`: seconds of a decode step with this request in it, and `tpot` the same stretched
    by prefills that cut in. `awaited`: tokens that will be cached once another request's prompt was read, which takes
    `ready` seconds more.
    """

    __slots__ = (
        "ask", "awaited", "cached", "completion", "costs", "demand", "kv", "limit", "live", "model", "needed", "offer",
        "prefill", "ready", "reason", "seconds", "shared", "shared_steps", "step", "tier", "total", "tpot", "ttft",
        "view", "wait",
    )  # fmt: skip

    offer: Offer
    demand: Demand
    cached: int
    shared: int
    kv: int
    prefill: float
    shared_steps: float
    ready: float
    step: float
    tpot: float
    ttft: float
    completion: float
    costs: Costs
    seconds: list[float]
    total: float

    def __init__(self, ask: Ask, view: BackendView, model: str, tier: int) -> None:
        self.ask = ask
        self.view = view
        self.model = model
        self.tier = tier
        self.reason: Reason | None = None
        self.limit: float | None = None
        self.needed: float | None = None
        self.wait = 0.0
        self.awaited = 0
        self.live = False

    def fit(self) -> None:
        """Work out what is cached there and what to reserve; needs the offer and the demand that filters found."""
        view = self.view
        hit = self.ask.request.hits.get(view.backend.name)
        self.cached, self.shared, self.kv = held_on(view, self.demand, hit)
        if hit is not None and hit.pending >= _AWAITED_SHARE:
            self._await(hit)

    def measure(self) -> None:
        """Work out the seconds, for the backend as it runs now; `open_after` adds a wait for room."""
        view, demand, speed = self.view, self.demand, self.offer.speed
        decoding, n, output, prompt = view.decoding, demand.sequences, demand.output_mean, demand.estimate.prompt
        cached = self.cached
        alone = speed.prefill.seconds(prompt - cached, cached) * view.prefill_factor
        rho = (view.prefill_pressure + alone) / RHO_TAU
        if rho > _RHO_CAP:
            rho = _RHO_CAP
        context = prompt + output // 2
        self.step = step = speed.decode.step_seconds(decoding + n, view.resident + n * context) * view.decode_factor
        self.tpot = tpot = step / (1.0 - rho)
        self.prefill = prefill = alone * (1.0 + decoding / _CHUNK)
        # It waits for half of the step under way, then shares its own steps with those who decode.
        self.shared_steps = steps = (0.5 - (cached - prompt) // _CHUNK) * step if decoding else 0.0
        self.ttft = ttft = view.backlog + prefill + steps
        self.completion = ttft + output * tpot

    def open_after(self, wait: float) -> None:
        """Say that the backend has room in `wait` seconds; its backlog is worked off meanwhile.

        A prefix that is being read for another request is waited for there as well.
        """
        if self.awaited:
            wait = max(wait, self.ready)
            self._read_the_rest()
        self.wait = wait
        self.ttft = max(wait, self.view.backlog) + self.prefill + self.shared_steps
        self.completion = self.ttft + self.demand.output_mean * self.tpot

    def _await(self, hit: Hit) -> None:
        """Note a prefix that is being read there, if it is worth to be waited for.

        What is late may be so since all predictions are too short, those for other backends too: then it is taken to
        be half done, in their terms, until it has taken so long that it must be stuck.
        """
        prompt, block, left = self.demand.estimate.prompt, self.view.block, hit.ready - self.ask.now
        awaited = min(int(prompt * hit.pending), prompt - 1)
        awaited -= awaited % block
        if awaited - self.cached >= LEAST_AWAITED:
            self.awaited = awaited
            self.ready = left if left > 0.0 else max(0.5 * (hit.ready - hit.sent), -left / _STUCK)

    def _read_the_rest(self) -> None:
        """Work out the seconds anew for when the awaited prefix is there."""
        view, awaited = self.view, self.awaited
        prompt = self.demand.estimate.prompt
        alone = self.offer.speed.prefill.seconds(prompt - awaited, awaited) * view.prefill_factor
        self.tpot = self.step / (1.0 - min((view.prefill_pressure + alone) / RHO_TAU, _RHO_CAP))
        self.prefill = alone * (1.0 + view.decoding / _CHUNK)

    def price(self, costs: Costs) -> None:
        """Work out the seconds of every cost, and their sum."""
        self.costs = costs
        self.seconds = seconds = []
        total = 0.0
        for _, cost in costs:
            value = cost(self)
            total += value
            seconds.append(value)
        self.total = total

    @property
    def pace(self) -> float:
        """Seconds a token that its own answer should see in the median, for whoever checks it later; costs take `tpot`.

        Its own prompt is read by then. Prompts as long as its own cut in at random: of many an answer sees the mean, of
        less than one none.
        """
        step, alone = self.step, self.prefill
        rho = min(self.view.prefill_pressure / RHO_TAU, _RHO_CAP)
        if rho <= 0.0 or alone <= 0.0:
            return step
        count = rho / alone * self.demand.output_mean * step / (1.0 - rho)
        if count <= _MEDIAN:  # and where there is no answer at all, as of embeddings
            return step
        return step / (1.0 - rho * (1.0 - _MEDIAN / count))

    @property
    def backend(self) -> str:
        """The backend's name."""
        return self.view.backend.name

    @property
    def footprint(self) -> Footprint:
        """What the request needs there; made for whoever reads it, the numbers that decide are at hand without it."""
        return footprint_of(self.view, self.offer, self.demand, (self.cached, self.shared, self.kv))

    def candidate(self) -> Candidate:
        """The line of the trace that this weighing makes."""
        name = self.view.backend.name
        if not self.live:
            return Candidate(name, self.model, self.tier, self.reason, self.limit, self.needed)
        terms = tuple([(term, seconds) for (term, _), seconds in zip(self.costs, self.seconds, strict=True)])
        return Candidate(
            name, self.model, self.tier, self.reason, self.limit, self.needed, terms, self.total, self.footprint
        )
