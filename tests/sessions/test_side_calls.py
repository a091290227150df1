"""Small calls go where they push nobody out (known failure K4), and conversations stay where they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.core.backend import Backend
from gateway.core.decide import decide
from gateway.core.decision import Decision
from gateway.core.experience import Experience
from gateway.core.lease import Ended, Lease
from gateway.core.ledger import Totals
from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.request import Hit, Request
from gateway.core.snapshot import BackendView
from tests.core.fleet import DEVICE, NOW, offer, plan, request, snapshot, view

MAIN = fingerprint([b"the system prompt of an agent " * 30, b"and what it read " * 7000])
TITLE = fingerprint([b"the system prompt of an agent " * 30, b"a title for this, please"])


def slots_view(name: str, slots: int, prefill: float = 5000.0) -> BackendView:
    backend = Backend(name, "llama.cpp", DEVICE, shares_prefix=False, keeps_sequences=True)
    return replace(
        view(name, offers=(offer(prefill=prefill),), slots=slots, pool=40_000 * slots, block=1), backend=backend
    )


class Fleet:
    def __init__(self, *views: BackendView) -> None:
        self.experience = Experience()
        self.views = views

    def decide(self, asked: Request, chain: Chain, now: float) -> Decision:
        hits = self.experience.hits(chain, ("m",), self.views, now)
        return decide(plan(), replace(asked, hits=hits), snapshot(*self.views, now=now), now, 0.0)

    def serve(self, name: str, asked: Request, chain: Chain, now: float, *, calls: bool = False) -> None:
        chosen = next(each for each in self.views if each.name == name)
        decision = decide(plan(), asked, snapshot(chosen, now=now), now, 0.0)
        lease = Lease("l", asked, chain, decision, name, chosen.offers[0], chosen.block, now)
        self.experience.sent(lease, chosen)
        self.experience.first_token(lease, Totals(), now + 1.0)
        tokens = next(iter(asked.estimates.values())).prompt
        ended = Ended(completed=True, prompt_tokens=tokens, output_tokens=50, cached_tokens=0, calls=calls)
        self.experience.learn(lease, ended, None, Totals(), now + 2.0)


def test_a_title_leaves_the_slot_of_the_conversation_alone() -> None:
    # The one that holds the conversation is the faster one, so without the conversation it would be taken.
    fleet = Fleet(slots_view("busy", 1, prefill=5000.0), slots_view("idle", 1, prefill=3000.0))
    title = request("title", prompt=200, output=20, thread=2)
    assert fleet.decide(title, TITLE, NOW).backend == "busy"
    fleet.serve("busy", request("main", prompt=30_000, thread=1), MAIN, NOW, calls=True)
    assert fleet.decide(title, TITLE, NOW + 7.0).backend == "idle"


def test_what_nobody_comes_back_for_is_not_spared() -> None:
    fleet = Fleet(slots_view("busy", 1, prefill=5000.0), slots_view("idle", 1, prefill=3000.0))
    fleet.serve("busy", request("main", prompt=30_000, thread=1), MAIN, NOW)
    title = request("title", prompt=200, output=20, thread=2)
    assert fleet.decide(title, TITLE, NOW + 3700.0).backend == "busy"


def test_a_free_slot_pushes_nobody_out() -> None:
    fleet = Fleet(slots_view("busy", 2, prefill=5000.0), slots_view("idle", 2, prefill=3000.0))
    fleet.serve("busy", request("main", prompt=30_000, thread=1), MAIN, NOW, calls=True)
    other = fingerprint([b"quite another text " * 30])
    assert fleet.decide(request("other", prompt=200, output=20, thread=3), other, NOW + 7.0).backend == "busy"


def test_a_conversation_returns_to_its_own_slot() -> None:
    fleet = Fleet(slots_view("a", 1), slots_view("b", 1))
    fleet.serve("b", request("main", prompt=30_000, thread=1), MAIN, NOW, calls=True)
    longer = fingerprint([b"the system prompt of an agent " * 30, b"and what it read " * 7000, b"and more " * 100])
    decision = fleet.decide(request("next", prompt=30_300, thread=1), longer, NOW + 7.0)
    assert decision.backend == "b"
    terms = {each.backend: dict(each.terms) for each in decision.trace.candidates}
    assert terms["b"]["eviction"] == 0.0
    assert terms["a"]["eviction"] == 0.0


def test_of_equals_a_conversation_keeps_the_backend_that_it_had() -> None:
    """Known failure K2: nothing of it is cached, since its first line is another one each turn."""
    views = (view("a"), view("b"), view("c"))
    for roll in (0.0, 0.4, 0.9):
        asked = request("turn", home="b", placement=7)
        assert decide(plan(), asked, snapshot(*views), NOW, roll).backend == "b"


def test_a_home_that_is_ill_or_full_is_left() -> None:
    views = (view("a"), view("b", slots=1, running=1, reserved=1000))
    assert decide(plan(), request("turn", home="b", placement=7), snapshot(*views), NOW, 0.0).backend == "a"


@pytest.mark.parametrize(("home", "expected"), [("b", "b"), (None, "a")])
def test_a_conversation_that_was_moved_stays_at_its_new_home(home: str | None, expected: str) -> None:
    """Both hold it now, and the one that it left is a little faster."""
    views = (view("a", offers=(offer(prefill=5200.0, step=0.0195),)), view("b", offers=(offer(prefill=5000.0),)))
    hits = {"a": Hit(0.97, 1.0), "b": Hit(0.98, 1.0)}
    asked = request("turn", prompt=20_000, output=100, home=home, hits=hits)
    assert decide(plan(), asked, snapshot(*views), NOW, 0.0).backend == expected
