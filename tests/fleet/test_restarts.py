"""A process is told from the one before it by its start, its sizes, or a counter that went back."""

from __future__ import annotations

from gateway.engines.adapter import Facts, Load
from gateway.fleet.restarts import Incarnation


def test_a_later_start_is_a_restart_and_an_earlier_one_another_engine_behind_the_address() -> None:
    seen = Incarnation()
    assert not seen.discovered(Facts(started_at=100.0))
    assert not seen.sampled(Load(restarted_at=101.0, tokens_generated=5.0))
    assert seen.sampled(Load(restarted_at=200.0, tokens_generated=0.0))
    assert not seen.sampled(Load(restarted_at=101.0, tokens_generated=9.0))
    assert not seen.sampled(Load(restarted_at=200.0, tokens_generated=1.0))
    assert not seen.discovered(Facts(started_at=200.5))
    assert seen.discovered(Facts(started_at=300.0))


def test_sizes_change_by_a_restart_only() -> None:
    seen = Incarnation()
    assert not seen.sampled(Load(capacity=(2, 4096)))
    assert not seen.sampled(Load())
    assert not seen.sampled(Load(capacity=(2, 4096)))
    assert seen.sampled(Load(capacity=(2, 1024)))
    assert not seen.discovered(Facts(slots=2, pool_tokens=2048, block=1))
    assert not seen.discovered(Facts(slots=2))
    assert not seen.discovered(Facts(pool_tokens=2048))
    assert seen.discovered(Facts(pool_tokens=4096))


def test_a_counter_that_went_back_is_a_restart_where_no_start_is_told() -> None:
    seen = Incarnation()
    assert not seen.sampled(Load(tokens_generated=100.0))
    assert not seen.sampled(Load(tokens_generated=100.0))
    assert seen.sampled(Load(tokens_generated=3.0))
    assert not seen.sampled(Load(restarted_at=1.0, tokens_generated=2.0))


def test_what_went_away_is_compared_with_nothing_but_its_start() -> None:
    seen = Incarnation()
    seen.sampled(Load(restarted_at=100.0, capacity=(2, 4096), tokens_generated=7.0))
    seen.forget()
    assert not seen.sampled(Load(restarted_at=100.0, capacity=(4, 4096), tokens_generated=0.0))
    seen.forget()
    assert seen.sampled(Load(restarted_at=110.0))


def test_the_first_sample_is_compared_with_what_discovery_found() -> None:
    seen = Incarnation()
    assert not seen.discovered(Facts(capacity=(2, 4096)))
    assert seen.sampled(Load(capacity=(4, 512)))
    seen.forget()
    assert not seen.discovered(Facts(capacity=(4, 512)))
    assert not seen.sampled(Load(capacity=(4, 512)))


def test_an_engine_that_tells_one_size_in_two_ways_is_not_taken_for_restarted_again_and_again() -> None:
    seen = Incarnation()
    seen.discovered(Facts(capacity=(2, 4096)))
    assert seen.sampled(Load(capacity=(2, 2048)))
    for _ in range(3):
        seen.forget()
        assert not seen.discovered(Facts(capacity=(2, 4096)))
        assert not seen.sampled(Load(capacity=(2, 2048)))
    assert seen.sampled(Load(capacity=(2, 1024)))
