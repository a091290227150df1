"""When a decision hangs on how many tokens a prompt really has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.boundary import Label
from gateway.core.decide import decide
from gateway.core.plan import Route
from gateway.core.reasons import Reason
from gateway.core.request import Estimate, Request
from gateway.core.snapshot import Health
from gateway.core.uncertain import Stake, at_stake
from tests.core.fleet import NOW, offer, plan, request, snapshot, view

ROUTE = Route("m", "m")


def partly_counted(prompt: int, high: int, **more: Any) -> Request:
    """A request whose estimate goes on from a count, so that its own margin says all."""
    return request(estimates={"m": Estimate(prompt, high, 50, 50, "B")}, **more)


def stake(prompt: int, high: int, *, window: int = 1000, route: Route = ROUTE, **more: object) -> Stake:
    asked = partly_counted(prompt, high, **more)
    fleet = snapshot(view(offers=(offer(window=window),)))
    return at_stake(plan(route), asked, route, fleet)[1]


@pytest.mark.parametrize(
    ("prompt", "high", "expected"),
    [
        (600, 650, Stake.NOTHING),
        (900, 920, Stake.NOTHING),
        (900, 960, Stake.OVERFLOW),  # three margins over: 1080
        (1000, 1050, Stake.OVERFLOW),
        (1020, 1050, Stake.OVERFLOW),  # the low side, 990, leaves no room for 16 tokens: see below
        (1200, 1250, Stake.REFUSAL),
        (40_000, 40_100, Stake.NOTHING),  # hopeless
    ],
)
def test_the_band_around_a_window(prompt: int, high: int, expected: Stake) -> None:
    if prompt == 1020:
        assert stake(prompt, high, max_tokens=1) is expected
        assert stake(prompt, high) is Stake.REFUSAL
    else:
        assert stake(prompt, high) is expected


def test_where_nothing_was_counted_a_quarter_more_is_possible() -> None:
    assert Estimate(1000, 1010, 5, 5, "A").prompt_most == 1250
    assert Estimate(1000, 1010, 5, 5, "B").prompt_most == 1030
    assert Estimate(1000, 1200, 5, 5, "A").prompt_most == 1600


def test_kinds_of_text_that_nothing_was_learned_of_may_have_as_many_as_the_poorest_vocabulary_makes_of_them() -> None:
    rare = Estimate(300, 350, 50, 50, "A", 100, prompt_ceiling=1200)
    assert rare.prompt_most == 1200
    fleet = snapshot(view(offers=(offer(window=1000),)))
    assert at_stake(plan(), request(estimates={"m": rare}), ROUTE, fleet) == ("m", Stake.OVERFLOW)
    known = replace(rare, prompt_ceiling=None)
    assert at_stake(plan(), request(estimates={"m": known}), ROUTE, fleet) == ("m", Stake.NOTHING)
    assert rare.at_least(900).prompt_most == 900


def test_counted_prompts_are_sure() -> None:
    exact = {"m": Estimate(1000, 1000, 50, 50, "C")}
    fleet = snapshot(view(offers=(offer(window=1000),)))
    assert at_stake(plan(), request(estimates=exact), ROUTE, fleet) == ("m", Stake.NOTHING)


def test_a_budget_that_may_fit_is_worth_counting() -> None:
    assert stake(500, 520, max_tokens=430) is Stake.NOTHING  # 560 + 430 fit for certain
    assert stake(500, 520, max_tokens=480) is Stake.CUT  # 480 + 480 fit, 560 + 480 do not
    assert stake(500, 520, max_tokens=900) is Stake.NOTHING  # cut in any case, and far longer than answers are
    assert stake(900, 920, max_tokens=900) is Stake.CUT  # cut to less than an answer usually has


def test_a_cap_below_the_window_is_one_too() -> None:
    assert stake(850, 870, window=100_000, route=replace(ROUTE, context=1000)) is Stake.NOTHING
    assert stake(950, 960, window=100_000, route=replace(ROUTE, context=1000)) is Stake.CUT
    assert stake(990, 1000, window=100_000, route=replace(ROUTE, context=1000)) is Stake.OVERFLOW
    assert stake(1100, 1110, window=100_000, route=replace(ROUTE, context=1000)) is Stake.REFUSAL
    assert stake(1100, 1110, window=100_000) is Stake.NOTHING


def test_refuse_counts_the_asked_output() -> None:
    strict = replace(ROUTE, fit="refuse")
    assert stake(500, 520, route=strict, max_tokens=600) is Stake.REFUSAL
    assert stake(500, 520, route=strict, max_tokens=480) is Stake.OVERFLOW
    assert stake(500, 520, max_tokens=600) is Stake.NOTHING


def test_a_pool_smaller_than_the_window() -> None:
    fleet = snapshot(view(offers=(offer(window=100_000),), pool=1600))
    for prompt, high, expected in (
        (1400, 1420, Stake.NOTHING),
        (1500, 1560, Stake.OVERFLOW),
        (1800, 1830, Stake.REFUSAL),
    ):
        assert at_stake(plan(), partly_counted(prompt, high), ROUTE, fleet)[1] is expected
    many = partly_counted(700, 750, n=2)
    assert at_stake(plan(), many, ROUTE, fleet)[1] is Stake.NOTHING  # choices share the prompt
    own = snapshot(view(offers=(offer(window=100_000),), pool=1600, shares_prefix=False))
    assert at_stake(plan(), many, ROUTE, own)[1] is Stake.OVERFLOW


def test_refused_by_a_small_one_but_surely_fit_for_a_large_one() -> None:
    small, large = view("small", offers=(offer(window=1000),)), view("large", offers=(offer(window=9000),))
    assert at_stake(plan(), partly_counted(2000, 2100), ROUTE, snapshot(small, large))[1] is Stake.NOTHING
    assert at_stake(plan(), partly_counted(950, 1000), ROUTE, snapshot(small, large))[1] is Stake.OVERFLOW


def test_only_backends_that_may_serve_it_count() -> None:
    asked = partly_counted(2000, 2100, label=Label.RESTRICTED)
    near = view("near", offers=(offer(window=1000),))
    far = view("far", offers=(offer(window=9000),), clearance=Label.PUBLIC)
    down = view("down", offers=(offer(window=9000),), health=Health.DOWN)
    assert at_stake(plan(), asked, ROUTE, snapshot(near, far, down))[1] is Stake.REFUSAL
    assert at_stake(plan(), asked, ROUTE, snapshot(far, down)) == ("m", Stake.NOTHING)


def test_a_fallback_counts_where_nobody_serves_the_first() -> None:
    route = Route("m", "m", fallback=("n",))
    asked = request(estimates={"m": Estimate(10, 10, 5, 5), "n": Estimate(1000, 1050, 50, 50)})
    fleet = snapshot(view(offers=(offer("n", window=1000),)))
    assert at_stake(plan(route), asked, route, fleet) == ("n", Stake.OVERFLOW)


@given(
    prompt=st.integers(1, 5000),
    margin=st.integers(0, 1000),
    floor=st.none() | st.integers(1, 2000),
    window=st.integers(64, 4000),
    pool=st.sampled_from((0, 512, 2048, 100_000)),
    max_tokens=st.none() | st.integers(0, 3000),
    fit=st.sampled_from(("clamp", "refuse")),
    truth=st.floats(0, 1),
)
def test_where_nothing_is_at_stake_counting_changes_no_refusal(
    prompt: int, margin: int, floor: int | None, window: int, pool: int, max_tokens: int | None, fit: str, truth: float
) -> None:
    """For any true count between the sides, the verdict by the estimate is the verdict by the count."""
    route = replace(ROUTE, fit=fit)
    guess = Estimate(prompt, prompt + margin, 50, 100, "A", floor)
    if guess.prompt_low > 32 * window:
        return
    fleet = snapshot(view(offers=(offer(window=window),), pool=pool))
    asked = request(estimates={"m": guess}, max_tokens=max_tokens)
    if at_stake(plan(route), asked, route, fleet)[1] is not Stake.NOTHING:
        return
    low, high = guess.prompt_low, guess.prompt_most
    real = round(low + truth * (high - low))
    counted = request(estimates={"m": Estimate(real, real, 50, 100, "C")}, max_tokens=max_tokens)
    one, other = (decide(plan(route), each, fleet, NOW, 0.5) for each in (asked, counted))
    refused = Reason.CONTEXT_TOO_LONG
    assert (one.reason is refused) == (other.reason is refused)
