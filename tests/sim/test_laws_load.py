"""Load as the gateway sees it in virtual time: own and others' told apart, and batches held to an objective."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gateway.sim.engine_model import EngineModel
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import (
    MIXED,
    MODEL,
    Watched,
    anybody,
    config,
    conversations,
    engines_of,
    foreseen,
    stream,
)


@pytest.mark.parametrize("kind", ["conversations", "alone"])
def test_what_is_ours_is_not_taken_for_others(kind: str) -> None:
    """Answers of unknown length, shared prefixes, half-read prompts: never a twentieth of a pool is suspected."""
    arrivals = conversations(3, 0.5, 90.0) if kind == "conversations" else stream(5, 1.5, 90.0)
    policy = GatewayPolicy.from_yaml(config(MIXED), anybody)
    worst = dict.fromkeys(MIXED, 0.0)

    def look(now: float, engines: Mapping[str, EngineModel]) -> None:
        for member in policy.desk.fleet.roster:
            pool = member.capacity.pool_tokens
            name = member.backend.name
            worst[name] = max(worst[name], member.observer.foreign_tokens(now) / pool)

    simulate(arrivals, engines_of(MIXED), Watched(policy, look))
    assert max(worst.values()) <= 0.05


@pytest.mark.parametrize(("goal", "kept"), [(0.040, True), (None, False)])
def test_a_batch_is_held_to_the_objective_of_its_route(goal: float | None, kept: bool) -> None:
    """A Spark that could run 256 sequences, with three times the requests that keep 40 ms a token."""
    more = "" if goal is None else f"models: [{{name: {MODEL}, serves: {MODEL}, slo: {{tpot: {goal}s}}}}]"
    spark = {"spark": "dgx-spark"}
    policy = GatewayPolicy.from_yaml(config(spark, more=more), foreseen)
    run = simulate(stream(5, 1.0, 60.0, prompt=(200, 800), output=(200, 400)), engines_of(spark), policy)
    times = sorted(outcome.tpot_s for outcome in run.outcomes if outcome.tpot_s is not None)
    assert len(times) > 40
    assert (times[int(0.95 * len(times))] <= 0.044) == kept
    assert (times[len(times) // 2] <= 0.100) == kept
