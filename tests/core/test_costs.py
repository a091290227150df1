from __future__ import annotations

from dataclasses import is_dataclass

import pytest

from gateway.core.costs import costs_of
from gateway.core.costs.completion_time import CompletionTime
from gateway.core.costs.deadline_risk import DeadlineRisk
from gateway.core.costs.eviction import Eviction
from gateway.core.costs.harm_to_others import HarmToOthers
from gateway.core.costs.move_penalty import MovePenalty
from gateway.core.costs.overflow_risk import OverflowRisk
from gateway.core.filters.fits_context import FitsContext
from gateway.core.filters.serves_model import ServesModel
from gateway.core.plan import Plan, Route, RoutingCosts
from gateway.core.request import Request
from gateway.core.snapshot import BackendView
from gateway.core.weighing import Ask, Weighing
from tests.core.fleet import NOW, hit, offer, plan, request, view


def weighed(seen: BackendView, asked: Request | None = None, policy: Plan | None = None) -> Weighing:
    policy = policy or plan()
    made = Weighing(Ask(policy, asked or request(), policy.routes["m"], NOW), seen, "m", 0)
    assert ServesModel().check(made) is None
    assert FitsContext().check(made) is None
    made.fit()
    made.measure()
    return made


def test_completion_is_the_first_token_and_then_the_answer() -> None:
    # 5000 tokens at 5000/s, then 200 steps of 20 ms stretched by 1 s of prefill in 20.
    made = weighed(view(), request(prompt=5000, output=200))
    assert CompletionTime().seconds(made) == pytest.approx(1.0 + 200 * 0.02 / (1 - 1 / 20))


def test_prefill_sent_lately_stretches_decoding_up_to_a_bound() -> None:
    calm, busy = weighed(view()), weighed(view(prefill_pressure=10.0))
    drowned = weighed(view(prefill_pressure=1000.0))
    assert busy.tpot == pytest.approx(0.02 / (1 - 10.2 / 20))
    assert calm.tpot < busy.tpot < drowned.tpot == pytest.approx(0.02 / 0.15)


def test_room_that_comes_later_delays_the_first_token() -> None:
    made = weighed(view(backlog=1.0, running=1))
    assert made.ttft == pytest.approx(1.2)
    made.open_after(0.5)
    assert made.ttft == pytest.approx(1.2)
    made.open_after(3.0)
    assert made.ttft == pytest.approx(3.2)


def test_harm_grows_with_those_who_decode_there() -> None:
    asked = request(prompt=5000)
    nobody = HarmToOthers().seconds(weighed(view(), asked))
    two = HarmToOthers().seconds(weighed(view(running=2, decoding=2), asked))
    four = HarmToOthers().seconds(weighed(view(running=4, decoding=4), asked))
    assert nobody == 0.0
    assert two == pytest.approx(0.35 * 2 * (1 + 2 / 2048))
    assert four == pytest.approx(0.35 * 4 * (1 + 4 / 2048))
    assert HarmToOthers(0.0).seconds(weighed(view(running=4, decoding=4), asked)) == 0.0


def test_missed_goals_cost_three_times_what_they_are_missed_by() -> None:
    goals = plan(Route("m", "m", ttft=2.0, tpot=0.03))
    on_time = weighed(view(), request(prompt=1000), goals)
    assert DeadlineRisk().seconds(on_time) == 0.0
    late = weighed(view(), request(prompt=1000, waited=5.0), goals)
    assert DeadlineRisk().seconds(late) == pytest.approx(3.0 * (5.0 + 0.2 - 2.0))
    slow = weighed(view(decode_factor=2.0), request(prompt=1000, output=100), goals)
    assert DeadlineRisk().seconds(slow) == pytest.approx(3.0 * 100 * (slow.tpot - 0.03))
    assert DeadlineRisk().seconds(weighed(view(), request(waited=500.0))) == 0.0


def test_leaving_home_costs_a_tenth_and_at_least_150_ms() -> None:
    away = request(prompt=1000, output=10, hits={"home": hit(0.8)})
    assert MovePenalty().seconds(weighed(view("home"), away)) == 0.0
    assert MovePenalty().seconds(weighed(view("b"), away)) == 0.15
    long = request(prompt=10_000, output=1000, hits={"home": hit(0.8)})
    made = weighed(view("b"), long)
    assert MovePenalty().seconds(made) == pytest.approx(0.1 * CompletionTime().seconds(made))


def test_without_a_home_nothing_is_left() -> None:
    assert MovePenalty().seconds(weighed(view("b"), request())) == 0.0
    faint = request(hits={"a": hit(0.5, trust=0.05)})
    assert MovePenalty().seconds(weighed(view("b"), faint)) == 0.0
    shared = request(hits={"a": hit(0.90), "b": hit(0.88)})
    assert MovePenalty().seconds(weighed(view("b"), shared)) == 0.0


def test_a_window_that_may_be_too_small_costs_by_its_likelihood() -> None:
    unsure = request(prompt=8000, high=8800, output=0)
    assert OverflowRisk().seconds(weighed(view(offers=(offer(window=9000),)), unsure)) == 0.0
    assert OverflowRisk().seconds(weighed(view(offers=(offer(window=8400),)), unsure)) == pytest.approx(
        2.0 * 400 / 1600
    )
    assert OverflowRisk(5.0).seconds(weighed(view(offers=(offer(window=7200),)), unsure)) == pytest.approx(5.0)


def test_an_answer_cut_short_costs_the_part_that_is_lost() -> None:
    asked = request(prompt=8000, output=400)
    made = weighed(view(offers=(offer(window=8100),)), asked)
    assert OverflowRisk().seconds(made) == pytest.approx(2.0 * 0.75)


def test_costs_are_values_with_a_file_each_and_take_their_weights_from_the_policy() -> None:
    terms = costs_of(RoutingCosts(harm=0.5, deadline=2.0, move_share=0.2, move_floor=0.3))
    assert terms is costs_of(RoutingCosts(harm=0.5, deadline=2.0, move_share=0.2, move_floor=0.3))
    owners = [seconds.__self__ for _, seconds in terms]  # type: ignore[attr-defined]
    own = [CompletionTime(), HarmToOthers(0.5), DeadlineRisk(2.0), MovePenalty(0.2, 0.3), OverflowRisk(), Eviction()]
    assert owners == own
    for (name, _), owner in zip(terms, owners, strict=True):
        assert is_dataclass(owner)
        assert type(owner).__module__ == f"gateway.core.costs.{name}"
