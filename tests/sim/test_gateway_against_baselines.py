"""The gateway against plain proxies: a Spark, two 3090s and a PRO 6000, conversations that share prefixes.

Run with -s to see the table. Goodput: share of all requests answered with a TTFT of at most 3 s and a second for every
2000 tokens of prompt, and at most 100 ms a token; a refusal is a miss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import pytest

from gateway.sim.baselines import LeastRequests, RoundRobin
from gateway.sim.events import Policy
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import MIXED, anybody, config, conversations, engines_of

SEEDS = (1, 2)
SPAN_S = 60.0

POLICIES: dict[str, Callable[[], Policy]] = {
    "kvgate": lambda: GatewayPolicy.from_yaml(config(MIXED, more="queue: {wait: 4s}"), anybody),
    "least requests": LeastRequests,
    "round robin": RoundRobin,
}


@dataclass(frozen=True, slots=True)
class Row:
    """Means over the seeds. Seconds; shares of 1."""

    goodput: float
    ttft: float
    cached: float
    refused: float
    preemptions: float


def measure(make: Callable[[], Policy], rate: float) -> Row:
    runs = [simulate(conversations(seed, rate, SPAN_S), engines_of(MIXED), make(), horizon_s=0.05) for seed in SEEDS]
    return Row(
        goodput=fmean(run.goodput() for run in runs),
        ttft=fmean(o.ttft_s for run in runs for o in run.outcomes if o.ttft_s is not None),
        cached=fmean(
            sum(o.cached_tokens for o in run.outcomes)
            / sum(o.prompt_tokens for o in run.outcomes if o.ttft_s is not None)
            for run in runs
        ),
        refused=fmean(sum(o.refused is not None for o in run.outcomes) / len(run.outcomes) for run in runs),
        preemptions=fmean(sum(o.preemptions for o in run.outcomes) for run in runs),
    )


@pytest.mark.parametrize(
    ("rate", "goodput", "ahead", "sooner"), [(3.5, 0.95, 0.1, 1.5), (5.0, 0.65, 0.15, 3.0)], ids=["full", "too much"]
)
def test_the_gateway_serves_more_and_sooner(rate: float, goodput: float, ahead: float, sooner: float) -> None:
    rows = {name: measure(make, rate) for name, make in POLICIES.items()}
    print(f"\n{rate} sessions/s     goodput  TTFT mean   cached  refused  preemptions")
    for name, row in rows.items():
        shares = f"{row.cached:8.1%} {row.refused:8.1%}"
        print(f"{name:16} {row.goodput:8.1%} {row.ttft:8.2f} s {shares} {row.preemptions:8.1f}")
    kvgate = rows.pop("kvgate")
    assert kvgate.goodput >= goodput
    for row in rows.values():
        assert kvgate.goodput > row.goodput + ahead
        assert kvgate.ttft * sooner < row.ttft
        assert kvgate.cached > row.cached + 0.05
        assert kvgate.preemptions < 0.2 * row.preemptions
