"""When a backend counts as slower than it was."""

from __future__ import annotations

import math
import random

import pytest

from gateway.core.degrading.drift import Drift


def taught(drift: Drift, ratio: float, count: int, *, at: float = 0.0, spread: float = 0.15, seed: int = 1) -> float:
    chance = random.Random(seed)
    for _ in range(count):
        at += 1.0
        drift.learn(ratio * math.exp(chance.gauss(0.0, spread)), at)
    return at


@pytest.mark.parametrize("usual", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("slower", [1.8, 3.0])
def test_a_slowdown_is_found_within_twenty_samples_whatever_was_usual(usual: float, slower: float) -> None:
    drift = Drift()
    now = taught(drift, usual, 60)
    assert drift.slowdown() == 1.0
    now = taught(drift, usual * slower, 20, at=now, seed=2)
    assert drift.slowdown() == pytest.approx(slower, rel=0.15)
    assert drift.since == pytest.approx(61.0, abs=3.0)
    taught(drift, usual, 60, at=now, seed=3)
    assert (drift.slowdown(), drift.since) == (1.0, None)


def test_noise_alone_raises_no_alarm_that_is_acted_on() -> None:
    chance, drift, acted = random.Random(7), Drift(), 0
    for at in range(50_000):
        drift.learn(math.exp(chance.gauss(0.0, 0.15)), float(at))
        acted += (drift.slowdown() or 1.0) > 1.0
    assert acted == 0


def test_one_odd_sample_is_no_slowdown() -> None:
    drift = Drift()
    now = taught(drift, 1.0, 60)
    drift.learn(50.0, now + 1)
    assert drift.slowdown() == 1.0


def test_nothing_is_said_before_the_usual_is_known() -> None:
    drift = Drift()
    taught(drift, 9.0, 20)
    assert (drift.slowdown(), drift.known) == (None, False)


def test_what_all_peers_have_is_the_traffics_doing() -> None:
    drift = Drift()
    now = taught(drift, 1.0, 60)
    taught(drift, 2.0, 30, at=now)
    assert (drift.slowdown() or 0.0) > 1.8
    assert drift.slowdown(shift=math.log(2.0)) == 1.0


def test_a_speed_that_stays_for_an_hour_is_the_usual_one() -> None:
    drift = Drift()
    now = taught(drift, 1.0, 60)
    for _ in range(500):
        now += 10.0
        drift.learn(2.0, now)
    assert drift.slowdown() == 1.0


@pytest.mark.parametrize("odd", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_ratio_teaches_nothing(odd: float) -> None:
    drift = Drift()
    for at in range(100):
        drift.learn(odd, float(at))
    assert not drift.known


def test_a_device_that_comes_back_slower_with_its_engine_is_found() -> None:
    drift = Drift()
    now = taught(drift, 1.0, 60)
    drift.begin_anew()
    taught(drift, 3.0, 20, at=now, seed=2)
    assert (drift.slowdown() or 0.0) > 2.0
