"""From a request of the simulation to one that the gateway's core can decide upon: as bytes, not as known lengths."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache

from gateway.core.boundary import Label
from gateway.core.estimators.prompt_tokens import count_text
from gateway.core.experience import Experience
from gateway.core.plan import Plan
from gateway.core.prefix.chain import fingerprint
from gateway.core.request import Estimate, Request
from gateway.core.snapshot import Snapshot
from gateway.core.uncertain import Stake, at_stake, with_count
from gateway.sim.answer import WORDS
from gateway.sim.events import Arrival
from gateway.sim.gateway_flight import Pending
from gateway.sim.text import BYTES_PER_TOKEN, ByteText, SegmentText, Text

__all__ = ["Caller", "describe"]

_TILE = 64
"""Words after which a text starts over."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What a request says beside its text: who asks, for which model, on what terms."""

    model: str
    client: str = "client"
    klass: str = "default"
    label: Label = Label.PUBLIC
    max_tokens: int | None = None
    """The client's limit on the answer; None: the whole answer of a request that ends by length, else no limit."""
    estimate: Estimate | None = None
    """Taken in place of what the estimators say, for runs that ask what perfect knowledge would do."""


def describe(arrival: Arrival, caller: Caller, plan: Plan, experience: Experience, snapshot: Snapshot) -> Pending:
    """Measure and estimate one arrival, at the snapshot's now; ValueError where nobody serves its model."""
    route = plan.route(caller.model, snapshot)
    if route is None:
        raise ValueError(f"nobody serves {caller.model!r}")
    asked = arrival.request
    pieces = _pieces(asked.text, asked.prompt_tokens)
    counts = count_text(pieces)
    ends, end = [], 0
    for piece in pieces:
        end += len(piece)
        ends.append(end)
    chain = fingerprint(pieces, ends)
    estimate = caller.estimate
    limit = caller.max_tokens
    if limit is None and asked.finish_reason == "length":
        limit = asked.output_tokens
    request = Request(
        id=asked.id,
        model=caller.model,
        client=caller.client,
        klass=caller.klass,
        label=max(caller.label, route.label),
        arrival=snapshot.now,
        deadline=snapshot.now + plan.queue.wait,
        estimates={
            model: estimate
            or experience.estimate(model, caller.client, counts, route=route.name, klass=caller.klass, chain=chain)
            for model in route.models
        },
        max_tokens=limit,
        stream=True,
        session=arrival.session or None,
        placement=chain.head,
    )
    if caller.estimate is None:
        # Engines count what a decision hangs on, as the gateway asks them to.
        model, stake = at_stake(plan, request, route, snapshot)
        if stake is not Stake.NOTHING:
            request = with_count(request, model, asked.prompt_tokens)
    return Pending(request, chain, counts, asked.prompt_tokens, asked.output_tokens)


def _pieces(text: Text, tokens: int) -> list[bytes]:
    """The prompt as bytes, a piece a segment: equal segments give equal bytes, others share nothing."""
    if isinstance(text, ByteText):
        return [text.data[: tokens * BYTES_PER_TOKEN]]
    if not isinstance(text, SegmentText):
        raise TypeError(f"a {type(text).__name__} has no bytes to fingerprint")
    pieces = []
    for ident, length in text.segments:
        taken = min(length, tokens)
        if taken > 0:
            pieces.append(_written(ident, taken))
            tokens -= taken
    return pieces


@lru_cache(maxsize=4096)
def _written(ident: int, tokens: int) -> bytes:
    """Text of a segment: words of the emulated vocabulary that its id alone decides, four bytes a token.

    Estimates must be as near to that as to a real tokenizer's before anything was learned: letters in no order looked
    like words of ten letters, and every prompt was taken for less than half of what it had.
    """
    tile = "".join(random.Random(ident).choices(WORDS, k=_TILE)).encode()
    size = tokens * BYTES_PER_TOKEN
    return (tile * (size // len(tile) + 1))[:size]
