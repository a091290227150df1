"""What one request asks of a backend, before what is cached there and how full it is: window, output, KV tokens."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.backend import Offer
from gateway.core.bounds import Bound
from gateway.core.context_cap import window_of
from gateway.core.kv.shape import round_up
from gateway.core.output_quantiles import room_of
from gateway.core.plan import Plan, Route
from gateway.core.request import SURE, Estimate, Request
from gateway.core.snapshot import BackendView

__all__ = ["FLOOR_OUTPUT", "Demand", "Demands"]

FLOOR_OUTPUT = 16
"""Output tokens without which an answer is not worth starting."""


@dataclass(slots=True)
class Demand:
    """Tokens that one request asks of every backend of one kind.

    `window`: what prompt and output may have together, as `bound` says. `low`: the prompt on the low side of its
    estimate; `floor`: output without which it is not worth starting. `output` is reserved for each choice,
    `output_mean` expected; `max_tokens` what may be sent upstream (None: as the client sent it). `sequence`: what each
    choice holds for itself, `kv` what all of them hold with the part of the prompt that they share, `ceiling` what that
    may grow to; whole blocks. `sequences`: choices. `beside`: what the pool is charged for all of them beside what they
    hold (states, windows); part of `kv` and `ceiling`.

    Never changed once made; frozen it would take four times as long to make, and a named tuple is slower to read.
    """

    estimate: Estimate
    window: int
    low: int
    floor: int
    output: int
    output_mean: int
    max_tokens: int | None
    sequence: int
    kv: int
    ceiling: int
    sequences: int
    bound: Bound
    beside: int = 0


class Demands:
    """The demands of one request, each worked out once: most backends of a fleet are of one kind."""

    __slots__ = ("_estimate", "_floor", "_found", "_low", "_plan", "_request", "_route", "_strict")

    def __init__(self, plan: Plan, request: Request, route: Route) -> None:
        self._plan = plan
        self._request = request
        self._route = route
        self._strict = plan.reserve == "worst_case"
        self._found: dict[tuple[object, ...], Demand] = {}
        self._estimate: Estimate | None = None
        self._low = self._floor = 0

    def on(self, view: BackendView, offer: Offer) -> Demand:
        """What is asked of that backend, as that offer of it.

        Raises KeyError when the request carries no estimate at all.
        """
        backend, room = view.backend, room_of(view)
        # All facts that a demand depends on.
        kind = (
            offer.model, offer.served_as, offer.window, backend.context_cap, backend.shares_prefix, view.block,
            self._strict and view.pool, room, view.charge,
        )  # fmt: skip
        found = self._found.get(kind)
        if found is None:
            found = self._found[kind] = self._made(view, offer, room)
        return found

    def _made(self, view: BackendView, offer: Offer, room: int) -> Demand:
        request, route = self._request, self._route
        estimate, n, block = _estimate_of(request, offer), request.n, view.block
        if estimate is not self._estimate:  # most kinds share one
            self._estimate, self._low, self._floor = estimate, estimate.prompt_low, _floor_output(request, estimate)
        window, bound = window_of(view, offer, route, self._plan, request)
        limit, send, wanted = _budget(request, offer, route, estimate, window, self._floor)
        output = estimate.output_in(room)
        if limit < output or (self._strict and output > 0):
            output = limit
        # Not cut by the window: a backend that would cut the answer short is not faster for it.
        mean = estimate.output
        if wanted is not None and wanted < mean:
            mean = wanted

        # The engine itself holds no sequence that is longer than its window, however unsure the estimate.
        longest, held = offer.window, estimate.prompt_high
        if longest < held:
            held = longest
        common = held - held % block if n > 1 and view.backend.shares_prefix else 0
        # With several choices these share the prompt's whole blocks; each has its own from the last, partial one on.
        own = held - common
        sequence = _in_blocks(own + output, longest - common, block)
        most = _in_blocks(own + limit, longest - common, block)
        # As long as it may become: a window that fills up later is not asked for again.
        beside = n * view.charge.beside(common + most) if view.charge.most else 0
        return Demand(
            estimate, window, self._low, self._floor, output, mean, send,
            sequence, common + n * sequence + beside, common + n * most + beside, n, bound, beside,
        )  # fmt: skip


def _in_blocks(tokens: int, longest: int, block: int) -> int:
    """Tokens in whole blocks, but those beyond `longest`."""
    if tokens > longest:
        tokens = longest
    return round_up(tokens, block)


def _estimate_of(request: Request, offer: Offer) -> Estimate:
    """The request's numbers under that offer's tokenizer; those of the model asked for stand in for missing ones."""
    estimates = request.estimates
    estimate = estimates.get(offer.model) or estimates.get(offer.served_as) or estimates.get(request.model)
    if estimate is None:
        if not estimates:
            raise KeyError(f"request {request.id} has no estimate")
        estimate = next(iter(estimates.values()))
    return estimate


def _floor_output(request: Request, estimate: Estimate) -> int:
    """Output tokens that must fit beside the prompt: few, and none where none is made (embeddings)."""
    floor = min(FLOOR_OUTPUT, estimate.output_high)
    asked = request.max_tokens
    return floor if asked is None or floor < asked else asked


def _budget(
    request: Request, offer: Offer, route: Route, estimate: Estimate, window: int, floor: int
) -> tuple[int, int | None, int | None]:
    """Output tokens that one choice may reach, the `max_tokens` to send (None: as the client sent it), what was wanted.

    Measured from far on the high side of the prompt, since engines refuse a sum that is one token over the window; from
    nearer by where a likely answer would be cut short else, and from the best guess where that is still so and nobody
    could count the prompt: an engine that finds it too long is asked once more (`overflowed`).
    """
    asked = request.max_tokens
    wanted = asked if asked is not None else route.output_default
    ceiling = route.output_ceiling
    if ceiling is not None and (wanted is None or wanted > ceiling):
        wanted = ceiling
    room = window - estimate.prompt - SURE * (estimate.prompt_high - estimate.prompt)
    if room < estimate.output_high:
        room = window - estimate.prompt_high
        if room < estimate.output and estimate.tier != "C":
            room = window - estimate.prompt
    if room < FLOOR_OUTPUT:
        room = max(room, floor, 1)
    if wanted is None:
        return room, None if window == offer.window else room, None
    limit = room if wanted > room and (asked is None or route.fit != "refuse") else wanted
    return limit, None if limit == asked else limit, wanted
