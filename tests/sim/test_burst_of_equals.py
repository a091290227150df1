"""Single-flight in virtual time: thirty agents start within a second on one new context of 30k tokens."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import pytest

from gateway.core import leading, weighing
from gateway.sim.events import Arrival
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.outcome import Simulation
from gateway.sim.sequence import SimRequest
from gateway.sim.text import SegmentText
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import anybody, config, engines_of, ledger_is_empty

AGENTS, PREFIX, OWN, ANSWER = 30, 30_000, 500, 200


def agents(count: int, prefix: int, *, contexts: int = 1, name: str = "r", seed: int = 1) -> list[Arrival]:
    """So many agents within a second, each with a question of its own after one of the contexts."""
    chance, arrivals = random.Random(seed), list[Arrival]()
    for at in range(count):
        kind = 900 + at % contexts
        said = SegmentText([(kind, prefix), (10_000 + at, OWN), (20_000 + at, ANSWER)])
        asked = SimRequest(f"{name}{at}", said, prefix + OWN, ANSWER)
        arrivals.append(Arrival(chance.random(), asked, session=asked.id))
    return sorted(arrivals, key=lambda each: each.at_s)


def run(device: str, arrivals: Sequence[Arrival], engines: int = 3) -> tuple[Simulation, GatewayPolicy]:
    devices = {f"{device}-{at}": device for at in range(engines)}
    policy = GatewayPolicy.from_yaml(config(devices), anybody)
    done = simulate(arrivals, engines_of(devices), policy, horizon_s=0.05)
    assert all(outcome.finish_reason == "stop" for outcome in done.outcomes)
    assert ledger_is_empty(policy, devices, 10_000.0)
    assert not policy.desk.experience.leaders
    return done, policy


@dataclass(frozen=True, slots=True)
class Row:
    """Tokens read and not found in a cache; seconds."""

    read: int
    engines: int
    mean: float
    p95: float


def row(done: Simulation, name: str = "r") -> Row:
    ours = [outcome for outcome in done.outcomes if outcome.id.startswith(name)]
    first = sorted(outcome.ttft_s for outcome in ours if outcome.ttft_s is not None)
    return Row(
        read=sum(outcome.prompt_tokens - outcome.cached_tokens for outcome in ours),
        engines=len({outcome.engine for outcome in ours}),
        mean=fmean(first),
        p95=first[int(0.95 * len(first))],
    )


@pytest.mark.parametrize("device", ["rtx-pro-6000", "dgx-spark", "rtx-3090"])
def test_a_burst_of_equals_reads_its_prefix_once_on_each_engine_it_uses(device: str) -> None:
    done, _ = run(device, agents(AGENTS, PREFIX))
    found = row(done)
    print(f"\n{device}: {found}")
    assert found.read <= found.engines * PREFIX + AGENTS * 600


FLEETS = {
    "three of one kind": dict.fromkeys(("a", "b", "c"), "rtx-pro-6000"),
    "a slow one and a fast one": {"slow": "dgx-spark", "fast": "rtx-pro-6000"},
    "of three kinds": {
        **dict.fromkeys(("spark-0", "spark-1"), "dgx-spark"),
        **dict.fromkeys(("rig-0", "rig-1", "rig-2", "rig-3"), "rtx-3090"),
        "pro": "rtx-pro-6000",
    },
}


def burst(devices: dict[str, str], seed: int, count: int, prefix: int, *, known: bool) -> Row:
    """A burst on a fleet that has served nothing yet, or (`known`) small requests for a minute and a half."""
    policy = GatewayPolicy.from_yaml(config(devices), anybody)
    start = 120.0 if known else 0.0
    arrivals = [
        Arrival(start + each.at_s, each.request, session=each.session) for each in agents(count, prefix, seed=seed)
    ]
    for at in range(40 if known else 0):
        said = SegmentText([(5000 + at, 3000), (6000 + at, 100)])
        arrivals.append(Arrival(2.0 * at, SimRequest(f"w{at}", said, 3000, 100), session=f"w{at}"))
    arrivals.sort(key=lambda each: each.at_s)
    return row(simulate(arrivals, engines_of(devices), policy, horizon_s=0.05))


@pytest.mark.parametrize("fleet", FLEETS)
def test_waiting_for_a_prefix_makes_nobody_slower_on_average(fleet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over bursts of 12 and 30 agents and contexts of 12k and 30k, on fleets that are known and that are not."""
    cases = [(count, prefix, known) for count in (12, 30) for prefix in (12_000, 30_000) for known in (False, True)]
    waited = [burst(FLEETS[fleet], 1, count, prefix, known=known) for count, prefix, known in cases]
    for module in (leading, weighing):
        monkeypatch.setattr(module, "LEAST_AWAITED", 10**9)
    not_waited = [burst(FLEETS[fleet], 1, count, prefix, known=known) for count, prefix, known in cases]
    for case, one, other in zip(cases, waited, not_waited, strict=True):
        print(f"\n{fleet} {case}: {one.mean:.2f} s, {other.mean:.2f} without; read {one.read}, {other.read}")
        assert one.mean < 1.1 * other.mean, case
    assert sum(one.mean for one in waited) < 0.97 * sum(other.mean for other in not_waited)


def test_a_fleet_of_one_reads_it_once() -> None:
    done, policy = run("rtx-pro-6000", agents(AGENTS, PREFIX), engines=1)
    assert row(done).read <= PREFIX + AGENTS * 600
    leader, *followers = policy.granted
    read = next(outcome.first_token_at for outcome in done.outcomes if outcome.id == leader.request.id)
    assert read is not None
    assert all(lease.granted_at >= read for lease in followers)


def test_agents_with_contexts_of_their_own_are_not_slowed() -> None:
    """As fast as when nobody waited for a prefix: 3.94 s on average, 6.53 s at the 95th percentile."""
    done, policy = run("rtx-pro-6000", agents(AGENTS, 6000, contexts=AGENTS))
    found = row(done)
    print(f"\n{found}")
    assert found.mean < 4.0
    assert found.p95 < 6.6
    waits = [c.reason for lease in policy.granted for c in lease.decision.trace.candidates]
    assert "prefix_in_prefill" not in waits


def test_nor_are_those_in_the_midst_of_a_burst() -> None:
    """Small requests of others, on a fleet of two on which thirty agents wait for one context.

    Engines read prompts in turn, so they come after the leader: in 4.7 s, and in 6.6 s when nobody waited for him.
    """
    others = agents(10, 0, contexts=10, name="o")
    done, _ = run("rtx-pro-6000", sorted([*agents(AGENTS, PREFIX), *others], key=lambda each: each.at_s), engines=2)
    found, small = row(done), row(done, "o")
    print(f"\n{found} {small}")
    assert found.read <= found.engines * PREFIX + AGENTS * 600
    assert small.mean < 5.5
