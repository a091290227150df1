"""Where requests go: inside their boundary, to the backend that holds their prefix, away from slow and dead ones."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.core.boundary import Label, within
from gateway.core.lease import Lease
from gateway.core.reasons import Reason
from gateway.sim.engine_model import Slowdown
from gateway.sim.events import Arrival, Breakdown
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.gateway_request import Caller
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import (
    MIXED,
    MODEL,
    anybody,
    config,
    conversations,
    engines_of,
    single,
    stream,
    tiny_engines,
)

LABELS = st.sampled_from(list(Label))


def fleet_of(clearances: dict[str, Label]) -> str:
    """A configuration with a clearance for each backend."""
    lines = config(dict.fromkeys(clearances, "dgx-spark"), timeouts="{first_token: 3s, token_gap: 2s}").splitlines()
    cleared = iter(clearances.values())
    lines = [
        f"{line[:-1]}, clearance: {next(cleared).name.lower()}}}" if line.startswith("  - {name") else line
        for line in lines
    ]
    return "\n".join([*lines, "queue: {wait: 5s}"])


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    st.lists(LABELS, min_size=1, max_size=4),
    st.lists(LABELS, min_size=1, max_size=30),
    st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(0, 3), st.booleans()), max_size=4),
)
def test_no_data_lands_where_it_may_not(
    cleared: list[Label], labels: list[Label], troubles: list[tuple[float, int, bool]]
) -> None:
    """Not at first, not as a retry, not when everybody who may see it is gone."""
    assume(max(cleared) >= Label.INTERNAL)  # a file by which nobody is sent anything is refused
    clearances = {f"e{at}": label for at, label in enumerate(cleared)}
    breakdowns = [Breakdown(at, f"e{which % len(cleared)}", crash=True, hang=dead) for at, which, dead in troubles]
    asked = {f"r{at}": label for at, label in enumerate(labels)}
    policy = GatewayPolicy.from_yaml(
        fleet_of(clearances), lambda arrival: Caller(MODEL, label=asked[arrival.request.id]), breakdowns=breakdowns
    )
    work = [Arrival(0.1 * at, single(ident, 100, 40)) for at, ident in enumerate(asked)]
    engines = tiny_engines(clearances, blocks=160)
    run = simulate(work, engines, policy, breakdowns=breakdowns)
    # Requests on an unnamed route are internal at least.
    for lease in policy.granted:
        assert within(max(asked[lease.request.id], Label.INTERNAL), clearances[lease.backend])
    for outcome in run.outcomes:
        label = max(asked[outcome.id], Label.INTERNAL)
        if not any(within(label, clearance) for clearance in clearances.values()):
            assert outcome.refused == Reason.OUTSIDE_BOUNDARY


def moved(lease: Lease) -> bool | None:
    """Whether a turn left the backend that was believed to hold most of it; None where none held a notable part."""
    hits = {name: hit.share * hit.trust for name, hit in lease.request.hits.items()}
    if max(hits.values(), default=0.0) < 0.3:
        return None
    return hits.get(lease.backend, 0.0) < 0.9 * max(hits.values())


@pytest.mark.parametrize("rate", [1.5, 2.5], ids=["busy", "full"])
def test_a_conversation_goes_back_to_its_backend_unless_that_costs_more_seconds(rate: float) -> None:
    policy = GatewayPolicy.from_yaml(config(MIXED), anybody)
    run = simulate(conversations(1, rate, 80.0), engines_of(MIXED), policy, horizon_s=0.05)
    turns = [(lease, gone) for lease in policy.granted if (gone := moved(lease)) is not None]
    away = [lease for lease, gone in turns if gone]
    assert len(turns) > 120
    assert len(away) < 0.2 * len(turns)
    costs, patience = policy.desk.plan.costs, 0.5 * policy.desk.plan.queue.aging
    for lease in away:
        weighed = {candidate.backend: candidate for candidate in lease.decision.trace.candidates}
        here = weighed[lease.backend].total
        home = weighed[
            max(lease.request.hits, key=lambda name: lease.request.hits[name].share * lease.request.hits[name].trust)
        ]
        assert here is not None
        assert home.total is not None
        cheaper = here <= home.total + max(costs.move_share * home.total, costs.move_floor)
        # Home may be full for longer than anybody should wait for it by choice, or others wait for it by choice
        # already: that those who come after wait longer is a price, too, but never so large as the way there.
        crowded = here <= 2.0 * home.total
        assert cheaper or (home.reason is not None and (lease.queued > patience or crowded)), lease.decision.trace
    hit = sum(outcome.cached_tokens for outcome in run.outcomes) / sum(o.prompt_tokens for o in run.outcomes)
    assert hit > 0.65


PAIR = {"a": "dgx-spark", "b": "dgx-spark"}


def share_of_a(slowdown: Slowdown) -> tuple[float, GatewayPolicy]:
    """Share of the requests that the first of two equal engines gets, once there was time to learn."""
    breakdowns = [Breakdown(0.0, "a", slowdown)]
    policy = GatewayPolicy.from_yaml(config(PAIR), anybody, breakdowns=breakdowns)
    run = simulate(stream(3, 1.0, 120.0), engines_of(PAIR), policy, breakdowns=breakdowns, horizon_s=0.05)
    late = Counter(outcome.engine for outcome in run.outcomes if outcome.arrived_at > 40.0)
    return late["a"] / late.total(), policy


def test_a_slowed_engine_gets_less_once_that_is_learned() -> None:
    healthy, _ = share_of_a(Slowdown())
    slowed, policy = share_of_a(Slowdown(decode=3.0, prefill=3.0))
    assert healthy == pytest.approx(0.5, abs=0.1)
    assert slowed < 0.75 * healthy
    (prefill_a, decode_a), (prefill_b, decode_b) = (policy.desk.experience.factors(name, 120.0) for name in PAIR)
    # Learned under load, from requests that were never alone.
    assert decode_a / decode_b == pytest.approx(3.0, rel=0.15)
    assert prefill_a / prefill_b == pytest.approx(3.0, rel=0.3)


def test_what_is_learned_is_the_device_not_its_load() -> None:
    """Factors come out as the true device over the catalogue's, whatever the traffic was."""
    policy, engines = GatewayPolicy.from_yaml(config(MIXED), anybody), engines_of(MIXED)
    simulate(conversations(2, 2.5, 80.0), engines, policy, horizon_s=0.01)
    for view in policy.desk.snapshot().views:
        prior, true = view.offers[0].speed, engines[view.name].profile.step_time
        decode = true.decode_s(8, 8 * 4500) / prior.step_seconds(8, 8 * 4500)
        prefill = true.prefill_s(2000) / prior.prefill_seconds(2000)
        assert view.decode_factor == pytest.approx(decode, rel=0.2), view.name
        assert view.prefill_factor == pytest.approx(prefill, rel=0.3), view.name


def test_what_waits_when_an_engine_dies_is_served_by_the_others() -> None:
    breakdowns = [Breakdown(20.0, "a", crash=True, hang=True)]
    policy = GatewayPolicy.from_yaml(config(PAIR, running="4"), anybody, breakdowns=breakdowns)
    run = simulate(stream(6, 1.5, 40.0, output=(100, 300)), engines_of(PAIR), policy, breakdowns=breakdowns)
    waiting = [o for o in run.outcomes if o.arrived_at < 20.0 and (o.placed_at is None or o.placed_at > 20.0)]
    assert len([o for o in waiting if o.lost == 0]) >= 3, "nobody waited"
    assert all(o.engine == "b" and o.finish_reason == "stop" for o in waiting if o.lost == 0)
    # What had begun to answer is broken off; what had not is asked for again, at the other one.
    lost = [o for o in run.outcomes if o.lost]
    assert lost
    assert all(o.refused == "broken" or (o.engine == "b" and o.finish_reason == "stop") for o in lost)
    assert all(o.engine == "b" for o in run.outcomes if o.arrived_at > 20.0 and o.finish_reason)
    assert sum(o.refused is not None for o in run.outcomes) <= 4
