"""Laws of the forecast: what no mix and no device may break."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.forecast import Bottleneck, Goals, Sample, Traffic, forecast, sustained


@dataclass(frozen=True)
class Plain:
    """A device whose seconds are proportions."""

    prefill: float = 0.001
    step: float = 0.01
    sequence: float = 0.0001
    kv: float = 0.0

    def prefill_seconds(self, uncached: int, cached: int = 0) -> float:
        return uncached * self.prefill

    def step_seconds(self, batch: int, kv_tokens: int = 0) -> float:
        return self.step + self.sequence * batch + self.kv * kv_tokens


ONE = Traffic([Sample(1000, 0, 100)])
samples = st.lists(
    st.builds(
        lambda p, share, o: Sample(p, int(p * share), o),
        st.integers(1, 50_000),
        st.floats(0, 0.9),
        st.integers(1, 4000),
    ),
    min_size=1,
    max_size=20,
)


def test_alone_a_request_takes_its_own_prefill_and_steps() -> None:
    told = forecast(Plain(), 10, 10, ONE, 1e-9)
    assert told.full is None
    assert told.ttft == pytest.approx(1.0 + 0.01, rel=0.02)
    assert told.tpot == pytest.approx(0.0101)


def test_the_wait_is_that_of_a_queue_with_one_server() -> None:
    """Equal prefills of 1 s at half load: M/D/1 waits rho / (2 (1 - rho)) = 0.5 s."""
    told = forecast(Plain(step=1e-9, sequence=0.0), 100, 100, ONE, 0.5)
    assert told.ttft == pytest.approx(1.0 + 0.5, rel=1e-3)


def test_what_gives_out_is_named() -> None:
    assert forecast(Plain(), 0, 10, ONE, 0.1).full is Bottleneck.KV
    assert forecast(Plain(), 10, 10, ONE, 1.0).full is Bottleneck.PREFILL
    writes = Traffic([Sample(10, 0, 1000)])
    assert forecast(Plain(), 2, 100, writes, 1.0).full is Bottleneck.KV
    assert forecast(Plain(), 100, 2, writes, 1.0).full is Bottleneck.SLOTS
    assert forecast(Plain(sequence=0.01), 8, 8, writes, 1.0).full is Bottleneck.DECODE
    assert forecast(Plain(), 10, 10, ONE, 0.1, Goals(ttft=0.5)).full is Bottleneck.TTFT
    assert forecast(Plain(), 10, 10, ONE, 0.1, Goals(tpot=0.005)).full is Bottleneck.TPOT


def test_what_is_sustained_is_borne_and_a_little_more_is_not() -> None:
    for goals in (Goals(), Goals(ttft=3.0), Goals(tpot=0.02)):
        most = sustained(Plain(), 50, 50, ONE, goals)
        assert most.rate > 0.05
        assert most.full is not None
        assert forecast(Plain(), 50, 50, ONE, most.rate, goals).full is None
        assert forecast(Plain(), 50, 50, ONE, 1.01 * most.rate, goals).full is not None


def test_a_goal_that_no_request_can_meet_sustains_nothing() -> None:
    most = sustained(Plain(), 50, 50, ONE, Goals(ttft=0.5))
    assert (most.rate, most.full) == (0.0, Bottleneck.TTFT)


@given(samples, st.floats(0.001, 0.02), st.floats(1.05, 3.0))
def test_more_requests_are_never_answered_sooner(mix: list[Sample], rate: float, times: float) -> None:
    traffic = Traffic(mix)
    fewer, more = (forecast(Plain(kv=1e-8), 64, 64, traffic, each) for each in (rate, rate * times))
    assert more.ttft >= fewer.ttft or math.isinf(more.ttft)
    assert more.tpot >= fewer.tpot - 1e-9 or more.full is not None
    assert more.busy >= fewer.busy


@given(samples, st.integers(1, 200), st.integers(1, 200))
def test_more_room_never_sustains_less(mix: list[Sample], room: int, extra: int) -> None:
    traffic = Traffic(mix)
    small, large = (sustained(Plain(), size, 256, traffic).rate for size in (room, room + extra))
    assert large >= small * (1 - 1e-6)


def test_traffic_has_a_request() -> None:
    with pytest.raises(ValueError, match="without a request"):
        Traffic([])
