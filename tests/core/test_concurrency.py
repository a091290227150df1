"""Caps on sequences: the batch that keeps a TPOT objective, and what is learned of an engine that tells nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.concurrency import MOST, BatchCap, GradientLimit, batch_within, objectives
from gateway.core.estimators.decode_speed import DecodeSpeed
from gateway.core.plan import Plan, Route

DENSE = DecodeSpeed(0.002, 0.010, kv_seconds_per_token=2e-7, sequence_seconds=0.0003)
EXPERTS = DecodeSpeed(0.003, 0.006, 2e-7, 0.0003, expert_seconds=0.15, expert_share=1 / 32)
SPEEDS = st.builds(
    DecodeSpeed,
    st.floats(1e-4, 0.01),
    st.floats(1e-4, 0.1),
    st.floats(0.0, 1e-6),
    st.floats(0.0, 0.001),
    st.sampled_from([0.0, 0.05, 0.2]),
    st.sampled_from([1 / 64, 1 / 16, 1 / 4]),
)
FACTORS, CONTEXTS, GOALS = st.floats(0.1, 5.0), st.integers(1, 200_000), st.floats(0.001, 1.0)


@given(SPEEDS, GOALS, CONTEXTS, FACTORS)
def test_it_is_the_largest_batch_that_keeps_the_objective(
    speed: DecodeSpeed, tpot: float, context: int, factor: float
) -> None:
    batch = batch_within(speed, tpot, context, factor)
    assert 1 <= batch <= MOST
    if batch > 1:
        assert speed.step_seconds(batch, batch * context) * factor <= tpot * (1 + 1e-9)
    if batch < MOST:
        assert speed.step_seconds(batch + 1, (batch + 1) * context) * factor > tpot * (1 - 1e-9)


@given(SPEEDS, GOALS, GOALS, CONTEXTS, CONTEXTS, FACTORS, FACTORS)
def test_less_is_asked_of_a_slower_device_with_longer_contexts_and_a_stricter_objective(
    speed: DecodeSpeed, tpot: float, other: float, context: int, longer: int, factor: float, slower: float
) -> None:
    easy = batch_within(speed, max(tpot, other), min(context, longer), min(factor, slower))
    hard = batch_within(speed, min(tpot, other), max(context, longer), max(factor, slower))
    assert hard <= easy


def test_a_dense_model_and_one_of_experts_on_paper() -> None:
    # 2 + 10 ms and 0.5 ms for each sequence of 1,000 tokens: 76 of them make 50 ms.
    assert batch_within(DENSE, 0.050, 1000) == 76
    assert batch_within(DENSE, 0.050, 1000, factor=2.0) == 26
    assert batch_within(EXPERTS, 0.030, 1000) < batch_within(DENSE, 0.030, 1000) / 2, "experts are read by each one"


def test_the_strictest_route_of_a_model_holds_for_all_that_runs_with_it() -> None:
    routes = [
        Route("fast", "m", tpot=0.03),
        Route("slow", "m", tpot=0.1),
        Route("any", "n", fallback=("m",), tpot=0.02),
    ]
    assert objectives(Plan(backends=(), routes={route.name: route for route in routes})) == {"m": 0.02, "n": 0.02}
    assert objectives(Plan(backends=(), routes={"m": Route("m", "m")})) == {}


def test_a_backend_keeps_the_objective_of_each_of_its_models() -> None:
    both = BatchCap([(DENSE, 0.05), (EXPERTS, 0.05)])
    alone = [BatchCap([(speed, 0.05)]).batch(8000, 8, 1.0) for speed in (DENSE, EXPERTS)]
    assert both.batch(8000, 8, 1.0) == min(each for each in alone if each is not None)
    assert BatchCap().batch(8000, 8, 1.0) is None


def test_what_is_worked_out_once_is_near_the_truth() -> None:
    cap = BatchCap([(DENSE, 0.05)])
    for context in (500, 1000, 3000, 10_000, 60_000):
        for factor in (0.7, 1.0, 1.3, 2.2):
            found, exact = cap.batch(context * 8, 8, factor), batch_within(DENSE, 0.05, context, factor)
            assert found is not None
            assert abs(found - exact) <= max(1.0, 0.15 * exact)


def test_an_idle_backend_is_taken_to_get_what_it_had() -> None:
    cap = BatchCap([(DENSE, 0.05)])
    busy = cap.batch(8 * 50_000, 8, 1.0)
    assert cap.batch(0, 0, 1.0) == busy


@given(st.lists(st.tuples(st.floats(0.0, 1e3) | st.just(math.inf) | st.just(math.nan), st.integers(0, 300))))
def test_what_is_learned_stays_between_1_and_256(seen: list[tuple[float, int]]) -> None:
    limit = GradientLimit()
    for residual, running in seen:
        limit.learn(residual, running)
        assert 1 <= limit.limit <= 256


def test_it_begins_with_four_and_grows_only_while_it_is_used() -> None:
    limit = GradientLimit()
    assert limit.limit == 4
    for _ in range(100):
        limit.learn(1.0, running=1)
    assert limit.limit == 4
    for _ in range(100):
        limit.learn(1.0, running=limit.limit)
    assert limit.limit > 40


def test_it_gives_way_when_the_engine_slows_down_with_more() -> None:
    """Speed halves with every four more than eight: it settles near there, and not at 256."""
    limit, seen = GradientLimit(), []
    for _ in range(400):
        running = limit.limit
        limit.learn(1.0 if running <= 8 else 2.0 ** ((running - 8) / 4), running)
        seen.append(limit.limit)
    assert max(seen[50:]) <= 24
    assert min(seen[50:]) >= 4


def test_a_constant_error_of_the_prediction_is_no_reason_to_slow_down() -> None:
    limit = GradientLimit()
    for _ in range(200):
        limit.learn(7.0, running=limit.limit)
    assert limit.limit > 100


@pytest.mark.parametrize("residual", [0.0, -1.0, math.inf, math.nan])
def test_nonsense_is_not_learned(residual: float) -> None:
    limit = GradientLimit()
    limit.learn(residual, running=4)
    limit.learn(1.0, running=4)
    assert limit.limit == 4
