"""What capacity buys: more of it never serves fewer, and admission by honest estimates never makes engines preempt."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Arrival
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import config, conversations, engines_of, foreseen, single, tiny_engines

SMALL = {"blocks": 64, "seqs": 4}
MORE: Mapping[str, tuple[tuple[str, ...], dict[str, int]]] = {
    "slots": (("a",), {"blocks": 64, "seqs": 8}),
    "memory": (("a",), {"blocks": 128, "seqs": 4}),
    "both": (("a",), {"blocks": 128, "seqs": 8}),
    "a twin": (("a", "b"), SMALL),
}


def served(work: list[Arrival], names: tuple[str, ...], shape: dict[str, int]) -> int:
    """How many of these get an answer, where nobody waits for more than two seconds."""
    text = config(dict.fromkeys(names, "dgx-spark"), more="queue: {wait: 2s}")
    run = simulate(work, tiny_engines(names, **shape), GatewayPolicy.from_yaml(text, foreseen))
    return sum(outcome.finish_reason == "stop" for outcome in run.outcomes)


@settings(deadline=None, max_examples=14, derandomize=True)
@given(
    st.lists(st.sampled_from([0.0, 0.0, 0.05, 0.1, 0.3]), min_size=15, max_size=45),
    st.integers(5, 250),
    st.integers(5, 90),
    st.sampled_from(sorted(MORE)),
)
def test_more_capacity_never_serves_fewer_requests_of_one_size(
    gaps: list[float], prompt: int, output: int, more: str
) -> None:
    """Of one size, since then requests are interchangeable: room can only let the next one start sooner.

    Of mixed sizes it does not hold, for no scheduler that lets small requests pass: a larger pool may take in a large
    one at once that would have been refused, and two small ones are too late for it (Graham's anomalies).
    """
    work, now = [], 0.0
    for at, gap in enumerate(gaps):
        now += gap
        work.append(Arrival(now, single(f"r{at}", prompt, output)))
    assert served(work, *MORE[more]) >= served(work, ("a",), SMALL)


def test_more_capacity_serves_more_where_there_was_too_little() -> None:
    work = [Arrival(0.05 * at, single(f"r{at}", 120, 60)) for at in range(60)]
    few = served(work, ("a",), SMALL)
    assert few < 60
    assert all(served(work, *MORE[more]) > few for more in ("both", "a twin"))


@pytest.mark.parametrize("seed", [3, 5])
def test_honest_estimates_never_make_an_engine_preempt(seed: int) -> None:
    """Shared prefixes included: blocks that several requests use are reserved once, as long as one of them runs."""
    fleet = {"left": "rtx-3090", "right": "rtx-3090"}
    engines: dict[str, EngineModel] = engines_of(fleet)
    policy = GatewayPolicy.from_yaml(config(fleet, more="queue: {wait: 10s}"), foreseen)
    run = simulate(conversations(seed, 2.0, 60.0), engines, policy, horizon_s=0.05)
    assert {name: engine.counters.preemptions for name, engine in engines.items()} == dict.fromkeys(fleet, 0)
    # Both were full, and much of what they held was shared.
    assert sum((outcome.placed_at or 1e9) - outcome.arrived_at > 2.0 for outcome in run.outcomes) > 20
    assert sum(outcome.cached_tokens for outcome in run.outcomes) > 100_000
