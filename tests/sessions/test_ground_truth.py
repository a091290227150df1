"""What engines say of their caches, in what steps hits come, and what the time says where an engine says nothing."""

from __future__ import annotations

import pytest

from gateway.core.decide import decide
from gateway.core.experience import Experience
from gateway.core.lease import Ended, Lease
from gateway.core.ledger import Totals
from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.prefix.granularity import Granularity
from gateway.core.prefix.inferring import inferred_cached
from tests.core.fleet import NOW, plan, request, snapshot, speed, view

PROMPT = b"what was said before, " * 4000
TOKENS = 20_000


class Engine:
    """Turns of one conversation at a backend, and what came of them."""

    def __init__(self) -> None:
        self.experience, self.view, self.turns, self.now = Experience(), view("b"), 0, NOW

    def turn(self, *, cached: int | None, ttft: float = 4.0, tokens: int = TOKENS) -> None:
        self.turns += 1
        self.now += 10.0
        chain, asked = self.chain(), request(prompt=tokens, stream=True)
        decision = decide(plan(), asked, snapshot(self.view, now=self.now), self.now, 0.0)
        lease = Lease(f"l{self.turns}", asked, chain, decision, "b", self.view.offers[0], 16, self.now)
        self.experience.sent(lease, self.view)
        self.experience.first_token(lease, Totals(), self.now + ttft)
        ended = Ended(completed=True, prompt_tokens=tokens, output_tokens=10, cached_tokens=cached, ttft=ttft)
        self.experience.learn(lease, ended, None, Totals(), self.now + ttft + 1.0)

    def chain(self) -> Chain:
        return fingerprint([PROMPT, b"and more, " * 100 * self.turns])

    def expected(self, tokens: int = TOKENS) -> int:
        self.turns += 1
        hit = self.experience.hits(self.chain(), ("m",), (self.view,), self.now).get("b")
        return hit.tokens(tokens, 16) if hit is not None else 0


@pytest.mark.parametrize("told", [0, None])
def test_an_engine_that_keeps_nothing_is_believed_nothing_after_ten_turns(told: int | None) -> None:
    """It says so, or its first tokens come as late as a whole prompt's."""
    engine = Engine()
    for _ in range(11):
        engine.turn(cached=told, ttft=4.0)
    assert engine.expected() < 0.15 * TOKENS


def test_an_engine_that_says_nothing_and_answers_fast_keeps_what_it_had() -> None:
    engine = Engine()
    engine.turn(cached=None, ttft=4.0)
    for _ in range(10):
        engine.turn(cached=None, ttft=0.1)
    assert engine.expected() > 0.9 * TOKENS


def test_steps_that_are_coarser_than_blocks_are_learned() -> None:
    """A hybrid model: the block that is told has 16 tokens, and hits come in steps of 528."""
    engine = Engine()
    for tokens in (20_000, 19_000, 18_000, 17_500, 19_500, 18_200, 20_100, 17_000):
        engine.turn(cached=int(tokens * 0.9) // 528 * 528, tokens=tokens)
    assert engine.expected(1500) in (528, 1056)
    assert engine.expected(500) == 0


def test_one_count_again_and_again_says_nothing_of_steps() -> None:
    grain = Granularity()
    for _ in range(20):
        grain.learn(4096, 16)
    assert grain.tokens == 1
    for cached in (160, 320, 336, 480, 16, 32):
        grain.learn(cached, 16)
    assert grain.tokens == 16
    fine = Granularity()
    for cached in range(1001, 1030):
        fine.learn(cached, 1)
    assert fine.tokens == 1


@pytest.mark.parametrize(
    ("expected", "backlog", "ttft", "cached"),
    [
        (18_000, 0.0, 0.5, 18_000),
        (18_000, 0.0, 3.5, 0),
        (18_000, 2.0, 3.5, None),  # it had to wait for others
        (8_000, 0.0, 3.5, None),  # half a prompt takes half the time: nothing that prediction could tell apart
        (0, 0.0, 3.5, None),
    ],
)
def test_the_time_tells_a_hit_from_a_miss_where_they_are_far_apart(
    expected: int, backlog: float, ttft: float, cached: int | None
) -> None:
    assert inferred_cached(speed(5000.0), 1.0, 20_000, expected, backlog, ttft) == cached


def test_a_short_prompt_tells_nothing_by_its_time() -> None:
    assert inferred_cached(speed(5000.0), 1.0, 1000, 950, 0.0, 0.2) is None
