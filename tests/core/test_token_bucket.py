from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.token_bucket import Rate, TokenBucket

RATES = st.builds(Rate, st.floats(1, 1e9), st.sampled_from((1.0, 60.0, 3600.0, 86400.0)))
STEPS = st.lists(st.tuples(st.floats(0, 1e4), st.floats(-1e9, 1e9)), max_size=30)


def test_a_bucket_is_full_at_first_and_fills_evenly() -> None:
    bucket = TokenBucket(Rate(3600, 3600), now=100.0)
    assert bucket.level(100.0) == 3600
    bucket.take(1000, 100.0)
    assert bucket.level(100.0) == 2600
    assert bucket.level(350.0) == pytest.approx(2850)
    assert bucket.level(5000.0) == 3600
    assert bucket.is_full(5000.0)


def test_what_is_given_back_to_a_full_bucket_runs_off() -> None:
    bucket = TokenBucket(Rate(100, 60), now=0.0)
    bucket.take(-50, 0.0)
    assert bucket.level(0.0) == 100


def test_an_overdrawn_bucket_fills_up_again_first() -> None:
    rate = Rate(100, 10)
    bucket = TokenBucket(rate, now=0.0)
    bucket.take(250, 0.0)
    assert bucket.level(0.0) == -150
    assert rate.wait(bucket.level(0.0), 10) == pytest.approx(16.0)
    assert rate.wait(bucket.level(16.0), 10) == 0


def test_more_than_the_bucket_holds_is_had_from_a_full_one() -> None:
    rate = Rate(100, 10)
    assert rate.wait(100, 5000) == 0
    assert rate.wait(90, 5000) == pytest.approx(1.0)


def test_g3_another_rate_holds_at_once_and_what_was_spent_stays_spent() -> None:
    bucket = TokenBucket(Rate(1000, 100), now=0.0)
    bucket.take(600, 0.0)
    bucket.change(Rate(500, 100), 10.0)  # 100 came back under the old rate
    assert bucket.level(10.0) == 0
    assert bucket.level(30.0) == pytest.approx(100)
    bucket.change(Rate(5000, 100), 30.0)
    assert bucket.level(30.0) == pytest.approx(4600)


@given(RATES, STEPS)
def test_the_level_is_never_over_the_amount_and_never_falls_by_itself(
    rate: Rate, steps: list[tuple[float, float]]
) -> None:
    bucket, now = TokenBucket(rate, 0.0), 0.0
    for seconds, amount in steps:
        bucket.take(amount, now)
        before = bucket.level(now)
        now += seconds
        assert before <= bucket.level(now) <= rate.amount


@given(RATES, st.floats(0, 1e9), st.floats(0, 1e9))
def test_after_the_wait_there_is_enough_and_shortly_before_there_is_not(
    rate: Rate, taken: float, wanted: float
) -> None:
    bucket = TokenBucket(rate, 0.0)
    bucket.take(taken, 0.0)
    wait = rate.wait(bucket.level(0.0), wanted)
    if wait > 1e-3:
        assert rate.wait(bucket.level(0.9 * wait), wanted) > 0
    assert rate.wait(bucket.level(wait * (1 + 1e-9)), wanted) == pytest.approx(0, abs=1e-6 * rate.seconds)
