"""Retry-After is true: who is turned away and comes back when it was told to finds its place."""

from __future__ import annotations

from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import anybody, config, engines_of, stream
from tests.sim.returning import Returning

ONE = {"only": "rtx-3090"}
CAPACITY = 2.16
"""Such requests a second, with a queue that never ends."""


def test_four_in_five_who_come_back_when_told_wait_no_more_than_two_seconds() -> None:
    """120 % load for four minutes, a queue of 15 s; all who are turned away come back."""
    policy = Returning(GatewayPolicy.from_yaml(config(ONE, more="queue: {work: 15s, wait: 60s}"), anybody))
    arrivals = stream(4, 1.2 * CAPACITY, 240.0, prompt=(600, 1000), output=(100, 200))
    run = simulate(arrivals, engines_of(ONE), policy, horizon_s=0.1)
    assert policy.refused > 50
    soon = sum(visit.waited is not None and visit.waited <= 2.0 for visit in policy.visits)
    assert soon >= 0.8 * len(policy.visits)
    assert all(outcome.finish_reason == "stop" for outcome in run.outcomes)
