"""Whatever happens to engines and clients: every request has one end, and the ledger returns to zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.reasons import Reason
from gateway.sim.engine_model import EngineModel, Slowdown
from gateway.sim.events import Arrival, Breakdown
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.outcome import Outcome, Simulation
from gateway.sim.sequence import SimRequest
from gateway.sim.text import SegmentText
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import anybody, config, ledger_is_empty, tiny_engines

NAMES = ("a", "b", "slots")
DEVICES = dict.fromkeys(NAMES, "dgx-spark")
SLOTTED = ("slots",)
HASTY = "{first_token: 3s, token_gap: 2s}"
CLIENT_SEES = {"stop", "length", "error"}
GIVEN_UP = {"connect", "broken", "first_token", "token_gap"}
"""Failures that no further attempt could mend, as the policy names them."""


@st.composite
def traffic(draw: Any) -> list[Arrival]:
    arrivals, now = [], 0.0
    for at in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0.0, 0.0, 0.05, 0.4, 3.0]))
        shared, own, output = draw(st.sampled_from([0, 64])), draw(st.integers(1, 250)), draw(st.integers(1, 90))
        text = SegmentText([(1, shared), (100 + 2 * at, own), (101 + 2 * at, output)])
        asked = SimRequest(f"r{at}", text, shared + own, output, draw(st.sampled_from(["stop", "length"])))
        arrivals.append(Arrival(now, asked, patience_s=draw(st.sampled_from([float("inf"), 0.0, 0.3, 2.0, 30.0]))))
    return arrivals


@st.composite
def trouble(draw: Any) -> list[Breakdown]:
    """Engines that slow down, hang, lose everything or are gone for a while, or for good."""
    breakdowns = []
    for _ in range(draw(st.integers(0, 5))):
        crash, hang = draw(st.booleans()), draw(st.booleans())
        slow = Slowdown(*(draw(st.sampled_from([1.0, 1.0, 4.0])) for _ in range(2)))
        breakdowns.append(Breakdown(draw(st.floats(0.0, 15.0)), draw(st.sampled_from(NAMES)), slow, hang, crash))
    return breakdowns


def play(
    arrivals: list[Arrival], breakdowns: Iterable[Breakdown]
) -> tuple[GatewayPolicy, Mapping[str, EngineModel], Simulation]:
    text = config(DEVICES, slotted=SLOTTED, timeouts=HASTY, more="queue: {wait: 20s, length: 12}")
    policy = GatewayPolicy.from_yaml(text, anybody, breakdowns=breakdowns)
    engines = tiny_engines(NAMES, slotted=SLOTTED, blocks=160)
    return policy, engines, simulate(arrivals, engines, policy, breakdowns=breakdowns)


def ends(outcome: Outcome) -> int:
    """How many ends a request had: an answer, a refusal, or a client that left."""
    return (outcome.finish_reason in CLIENT_SEES) + (outcome.refused is not None) + outcome.left


@settings(deadline=None, max_examples=70, derandomize=True)
@given(traffic(), trouble())
def test_every_request_has_one_end_and_the_ledger_returns_to_zero(
    arrivals: list[Arrival], breakdowns: list[Breakdown]
) -> None:
    policy, engines, run = play(arrivals, breakdowns)
    assert [ends(outcome) for outcome in run.outcomes] == [1] * len(arrivals)
    assert {o.refused for o in run.outcomes if o.refused} <= {*Reason, *GIVEN_UP}
    assert ledger_is_empty(policy, NAMES, 1e6)
    assert not any(engine.has_work for engine in engines.values())
    # A lease for each attempt, none of them on a backend that failed the request before.
    tries = [(lease.request.id, lease.backend) for lease in policy.granted]
    assert len(set(tries)) == len(tries)


def bad_day() -> tuple[list[Arrival], list[Breakdown]]:
    """One engine dies and comes back, one hangs for good; some clients are impatient."""
    arrivals = [
        Arrival(0.4 * at, SimRequest(f"r{at}", SegmentText([(at, 150), (900 + at, 60)]), 150, 60), patience_s=patience)
        for at, patience in enumerate([float("inf"), float("inf"), 1.0] * 20)
    ]
    return arrivals, [Breakdown(0.9, "a", crash=True, hang=True), Breakdown(6.0, "a"), Breakdown(2.5, "b", hang=True)]


def test_a_bad_day_has_it_all() -> None:
    policy, _, run = play(*bad_day())
    refused = {outcome.refused for outcome in run.outcomes}
    assert {"broken", "token_gap"} <= refused
    assert any(outcome.left for outcome in run.outcomes)
    assert any(lease.request.attempt > 0 for lease in policy.granted)
    assert {o.engine for o in run.outcomes if o.finish_reason and o.arrived_at > 16.0} >= {"a", "slots"}
    assert ledger_is_empty(policy, NAMES, run.makespan_s + 5.0)


def test_the_same_run_twice_is_the_same() -> None:
    assert play(*bad_day())[2] == play(*bad_day())[2]
