"""The scratch objects of one decision: the request's side, and one backend as it is being weighed.

Mutable and short-lived, unlike everything else here: filters note what they found, and the numbers that several costs
need are worked out once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.core.admission import class_of, is_aged
from gateway.core.decision import Candidate
from gateway.core.footprint import Footprint
from gateway.core.reserving import floor_output, footprint_within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gateway.core.backend import Offer
    from gateway.core.boundary import Label
    from gateway.core.plan import Plan, Route
    from gateway.core.reasons import Reason
    from gateway.core.request import Estimate, Request
    from gateway.core.snapshot import BackendView

__all__ = ["Ask", "Weighing"]

_RHO_TAU = 20.0
_RHO_CAP = 0.85
"""Interference of prefill with decode: its share of the last 20 s, at most 0.85 (found by simulation)."""
_CHUNK = 2048
"""Tokens of a mixed step (the usual chunked-prefill budget); decoding sequences take their share from a prefill."""
_HOME_SHARE = 0.05
"""Part of the prompt that must be resident before a backend counts as its home."""


class Ask:
    """The request's side: what is the same for every candidate."""

    __slots__ = ("_estimate", "_sides", "aged", "home", "klass", "label", "now", "plan", "request", "route", "waited")

    def __init__(self, plan: Plan, request: Request, route: Route, now: float) -> None:
        self.plan = plan
        self.request = request
        self.route = route
        self.now = now
        self.waited = now - request.arrival
        self.klass = class_of(plan, request)
        self.aged = is_aged(plan, request, now)
        self.label: Label = max(request.label, route.label)
        best = 0.0
        for hit in request.hits.values():
            expected = hit.share * hit.trust
            if expected > best:
                best = expected
        self.home: float | None = 0.95 * best if best > _HOME_SHARE else None
        """Part of the prompt that a home of it holds; None when no backend holds a notable part."""
        self._estimate: Estimate | None = None
        self._sides = (0, 0)

    def sides(self, estimate: Estimate) -> tuple[int, int]:
        """Prompt tokens on the low side and the least output, in tokens; most backends share one estimate."""
        if estimate is not self._estimate:
            self._estimate = estimate
            self._sides = (estimate.prompt_low, floor_output(self.request, estimate))
        return self._sides


class Weighing:
    """One backend for one tier: first offer, estimate, window and footprint, then seconds.

    `low`: prompt tokens on the low side of the estimate; `floor`: output tokens without which it is not worth starting.
    `live`: it works and could serve this, now or soon. `reason`, `limit` and `needed`: why it fell out. `wait`:
    expected seconds until it has room (0: it is open). `prefill`: seconds to read this prompt there, running decodes
    included. `ttft`: seconds from now to the first token; `completion`: to the last. `step`: seconds of a decode step
    with this request in it, and `tpot` the same stretched by prefills that cut in.
    """

    __slots__ = (
        "ask", "completion", "estimate", "floor", "footprint", "limit", "live", "low", "model", "needed", "offer",
        "prefill", "reason", "step", "terms", "tier", "total", "tpot", "ttft", "view", "wait", "window",
    )  # fmt: skip

    offer: Offer
    estimate: Estimate
    low: int
    floor: int
    window: int
    footprint: Footprint
    prefill: float
    step: float
    tpot: float
    ttft: float
    completion: float
    terms: tuple[tuple[str, float], ...]
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
        self.live = False

    def fit(self) -> None:
        """Work out the footprint; needs the offer, the estimate and the window that filters found."""
        ask = self.ask
        self.footprint = footprint_within(
            ask.request, self.view, self.offer, ask.plan, ask.route, self.estimate, self.window
        )

    def measure(self) -> None:
        """Work out the seconds, for the backend as it runs now; `open_after` adds a wait for room."""
        view, footprint, speed = self.view, self.footprint, self.offer.speed
        decoding, n = view.decoding, footprint.sequences
        alone = speed.prefill.seconds(footprint.uncached, footprint.cached) * view.prefill_factor
        rho = (view.prefill_pressure + alone) / _RHO_TAU
        if rho > _RHO_CAP:
            rho = _RHO_CAP
        context = footprint.prompt + footprint.output_mean // 2
        self.step = speed.decode.step_seconds(decoding + n, view.resident + n * context) * view.decode_factor
        self.tpot = self.step / (1.0 - rho)
        self.prefill = alone * (1.0 + decoding / _CHUNK)
        self.ttft = view.backlog + self.prefill
        self.completion = self.ttft + footprint.output_mean * self.tpot

    def open_after(self, wait: float) -> None:
        """Say that the backend has room in `wait` seconds; its backlog is worked off meanwhile."""
        self.wait = wait
        self.ttft = max(wait, self.view.backlog) + self.prefill
        self.completion = self.ttft + self.footprint.output_mean * self.tpot

    def price(self, costs: Sequence[tuple[str, Callable[[Weighing], float]]]) -> None:
        """Work out every cost, given as name and function, and their sum."""
        terms: list[tuple[str, float]] = []
        total = 0.0
        for name, seconds in costs:
            value = seconds(self)
            total += value
            terms.append((name, value))
        self.terms = tuple(terms)
        self.total = total

    def candidate(self) -> Candidate:
        """The line of the trace that this weighing makes."""
        name = self.view.backend.name
        if not self.live:
            return Candidate(name, self.model, self.tier, self.reason, self.limit, self.needed)
        return Candidate(
            name, self.model, self.tier, self.reason, self.limit, self.needed, self.terms, self.total, self.footprint
        )
