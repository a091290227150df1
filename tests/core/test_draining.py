from __future__ import annotations

import math

import pytest

from gateway.core.draining import DrainRate, expected_rate
from gateway.core.request import Estimate
from gateway.core.snapshot import Health
from tests.core.fleet import offer, view


def test_drain_rate_follows_what_ends() -> None:
    drain = DrainRate(0.0)
    assert drain.rate(0.0) == 0.0
    for second in range(1, 301):
        drain.completed(50.0, float(second))
    assert drain.rate(300.0) == pytest.approx(50.0, rel=0.05)
    assert drain.rate(330.0) == pytest.approx(50.0 / math.e, rel=0.05)


def test_a_young_drain_rate_is_taken_over_its_own_age() -> None:
    drain = DrainRate(0.0)
    for second in range(1, 4):
        drain.completed(50.0, float(second))
    assert drain.rate(3.0) == pytest.approx(50.0, rel=0.05)


def test_a_new_queue_counts_from_its_own_beginning() -> None:
    drain = DrainRate(0.0)
    drain.completed(50.0, 1000.0)  # for a quarter of an hour there was little to do
    drain.restart(1001.0)
    for second in range(1002, 1006):
        drain.completed(50.0, float(second))
    assert drain.rate(1005.0) == pytest.approx(50.0, rel=0.05)


def test_what_the_speeds_promise_counts_until_enough_was_seen() -> None:
    drain = DrainRate(0.0)
    assert drain.rate(0.0, expected=500.0, each=10.0) == pytest.approx(500.0)
    for tick in range(1, 301):
        drain.completed(10.0, 0.1 * tick)
    assert drain.rate(30.0, expected=500.0, each=10.0) == pytest.approx(100.0, rel=0.05)


def test_a_promise_that_is_not_kept_is_believed_less_and_less() -> None:
    drain = DrainRate(0.0)
    rates = [drain.rate(float(second), expected=500.0, each=100.0) for second in range(0, 30, 3)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 30.0


ASKED = Estimate(prompt=1000, prompt_high=1000, output=100, output_high=100)


def test_a_full_backend_completes_the_steps_of_one_answer_and_the_prefills_of_all() -> None:
    seen = view(slots=8, offers=(offer(prefill=5000.0, step=0.02),))
    assert expected_rate([seen], ["m"], ASKED) == pytest.approx(8 * 1100 / (100 * 0.02 + 8 * 0.2))
    assert expected_rate([seen, seen], ["m"], ASKED) == pytest.approx(2 * 8 * 1100 / (100 * 0.02 + 8 * 0.2))


def test_the_pool_bounds_how_many_run_at_once() -> None:
    small = view(slots=8, pool=2500)
    assert expected_rate([small], ["m"], ASKED) == pytest.approx(2 * 1100 / (100 * 0.02 + 2 * 0.2))


def test_backends_that_do_not_work_or_serve_it_promise_nothing() -> None:
    assert expected_rate([view(health=Health.DOWN), view(offers=(offer("other"),))], ["m"], ASKED) == 0.0
