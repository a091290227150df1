"""The share of a KV pool that may be filled: down by preemptions, up by their absence, always within its bounds."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.headroom import EVERY, FULLEST, LOWEST, RISE, SPARED_BYTES, Headroom, Range, range_of

GB = 1_000_000_000
USUAL = range_of(0.92, unified=False, memory=0, weights=0, pool=0)


def test_a_burst_of_preemptions_cuts_once() -> None:
    headroom = Headroom(USUAL)
    cuts = [headroom.preempted(now) for now in (0.0, 0.5, 9.9, 10.0)]
    assert cuts == [True, False, False, True]
    assert headroom.share == pytest.approx(0.92 * 0.95**2)


def test_it_never_falls_below_six_tenths() -> None:
    headroom = Headroom(USUAL)
    for k in range(100):
        headroom.preempted(k * EVERY)
    assert headroom.share == LOWEST


def test_a_minute_well_filled_without_a_preemption_earns_a_step() -> None:
    headroom = Headroom(USUAL)
    for now in range(0, 61, 5):
        headroom.sampled(0.9, float(now))
    assert headroom.share == pytest.approx(0.93)
    for now in range(61, 10_000, 5):
        headroom.sampled(0.97, float(now))
    assert headroom.share == FULLEST


def test_an_empty_pool_and_a_long_silence_prove_nothing() -> None:
    headroom = Headroom(USUAL)
    for now in range(0, 600, 5):
        headroom.sampled(0.5, float(now))
    headroom.sampled(0.9, 10_000.0)
    assert headroom.share == 0.92


def test_a_preemption_takes_back_what_was_earned_of_a_step() -> None:
    headroom = Headroom(USUAL)
    for now in range(0, 56, 5):
        headroom.sampled(0.95, float(now))
    headroom.preempted(56.0)
    for now in range(60, 110, 5):
        headroom.sampled(0.95, float(now))
    assert headroom.share == pytest.approx(0.92 * 0.95)


def test_a_restarted_engine_begins_anew_and_the_same_facts_change_nothing() -> None:
    headroom = Headroom(USUAL)
    headroom.preempted(0.0)
    headroom.within(USUAL)
    assert headroom.share < 0.92
    headroom.restart()
    assert headroom.share == 0.92
    headroom.within(Range(1.0, most=1.0))
    assert headroom.share == 1.0


def test_memory_that_is_the_machines_own_is_never_filled_to_its_end() -> None:
    spark = range_of(0.80, unified=True, memory=128 * GB, weights=60 * GB, pool=65 * GB)
    assert spark.start == 0.80
    assert 60 * GB + spark.most * 65 * GB == pytest.approx(128 * GB - SPARED_BYTES)
    tight = range_of(0.80, unified=True, memory=128 * GB, weights=100 * GB, pool=60 * GB)
    assert tight.start == tight.least == tight.most == pytest.approx(22 / 60)
    unknown = range_of(0.80, unified=True, memory=128 * GB, weights=0, pool=0)
    assert (unknown.start, unknown.most) == (0.80, 0.80)


EVENTS = st.lists(st.tuples(st.floats(0.0, 120.0), st.none() | st.floats(0.0, 1.2)), max_size=200)


@given(EVENTS, st.sampled_from([USUAL, Range(1.0, most=1.0), Range(0.3, 0.3, 0.3), Range(0.8, 0.6, 0.95)]))
def test_it_stays_within_its_bounds_and_moves_the_way_it_was_told(
    events: list[tuple[float, float | None]], bounds: Range
) -> None:
    headroom, now, cuts = Headroom(bounds), 0.0, []
    for pause, usage in events:
        now += pause
        before = headroom.share
        if usage is None:
            if headroom.preempted(now):
                cuts.append(now)
            assert headroom.share <= before
        else:
            headroom.sampled(usage, now)
            assert before <= headroom.share <= before + 0.01 + 1e-12
        assert bounds.least <= headroom.share <= bounds.most
    assert all(later - earlier >= EVERY for earlier, later in itertools.pairwise(cuts))


def test_a_step_takes_at_least_a_minute() -> None:
    headroom, steps = Headroom(USUAL), []
    for tick in range(2000):
        before = headroom.share
        headroom.sampled(1.0, tick * 0.5)
        if headroom.share > before:
            steps.append(tick * 0.5)
    assert all(later - earlier >= RISE for earlier, later in itertools.pairwise(steps))
    assert len(steps) == 6
