"""Faults are found soon and named rightly; engines that are well are left alone: a part of `tests.sim.faults`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from gateway.core.degrading.causes import Cause
from gateway.sim.engine_model import EngineModel, Slowdown
from gateway.sim.events import Action, Breakdown, Event
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.virtual import simulate
from tests.sim.faults import FAULTS, RATES, Kind, clean, play
from tests.sim.gateway_traffic import anybody, config, engines_of, stream


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.name)
def test_a_fault_is_named_within_a_minute(kind: Kind) -> None:
    seen = play(kind, ("left",), RATES["low"], 1)
    cause, after = seen.named["left"]
    assert cause in kind.right
    assert after < 60.0
    assert not seen.wrongly
    assert seen.ejected == 0
    assert seen.failed <= 0.01 * seen.requests


def test_half_an_hour_of_noise_takes_nobody_out_and_blames_nobody() -> None:
    seen = clean(0.5, RATES["low"], 3)
    assert (seen.ejected, sum(seen.wrongly.values()), seen.failed) == (0, 0, 0)
    assert Cause.NONE not in seen.wrongly


def test_h4_alive_but_three_times_slower_gets_less_than_half_of_its_share_and_all_again_when_it_is_well() -> None:
    slow, well = 300.0, 600.0
    breakdowns = [Breakdown(slow, "a", Slowdown(decode=3.3, prefill=3.3)), Breakdown(well, "a")]
    devices = {"a": "rtx-3090", "b": "rtx-3090"}
    policy = GatewayPolicy.from_yaml(config(devices), anybody, breakdowns=breakdowns, seed=1)
    causes: list[tuple[float, Cause]] = []

    class Watched:
        def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
            cause = policy.desk.fleet.roster["a"].condition.verdict.cause
            if not causes or causes[-1][1] is not cause:
                causes.append((now, cause))
            return policy.on_event(now, event, engines)

    simulate(stream(5, 1.0, 1000.0), engines_of(devices), Watched(), breakdowns=breakdowns, horizon_s=0.05)

    def share(begin: float, end: float) -> float:
        there = [lease.backend for lease in policy.granted if begin <= lease.granted_at < end]
        return there.count("a") / len(there)

    usual, degraded, back = share(60.0, slow), share(slow + 60.0, well), share(well + 120.0, 1000.0)
    assert 0.35 < usual < 0.65
    assert degraded < 0.5 * usual
    assert back > 0.75 * usual
    named = [(at, cause) for at, cause in causes if cause is Cause.CLOCK]
    assert named
    assert slow < named[0][0] < slow + 60.0
    assert causes[-1][1] in (Cause.NONE, Cause.QUEUEING)
