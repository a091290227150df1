"""What a plan foretells by arithmetic, against the same device simulated iteration by iteration."""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import fmean

import pytest

from gateway.core.forecast import Sample, Traffic, forecast
from gateway.sim.baselines import RoundRobin
from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Arrival
from gateway.sim.profile import EngineProfile, engine_profile
from gateway.sim.step_time import StepTime
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import single


@dataclass(frozen=True)
class Simulated:
    """The speed of the simulated device itself, so that the arithmetic of queues and batches alone is on trial."""

    time: StepTime

    def prefill_seconds(self, uncached: int, cached: int = 0) -> float:
        return self.time.prefill_s(uncached, cached)

    def step_seconds(self, batch: int, kv_tokens: int = 0) -> float:
        return self.time.decode_s(batch, kv_tokens)


def mix(seed: int, count: int) -> list[Sample]:
    chance = random.Random(seed)
    lengths = [(int(chance.lognormvariate(7.6, 0.8)), int(chance.lognormvariate(5.2, 0.6))) for _ in range(count)]
    return [Sample(min(max(prompt, 16), 20_000), 0, max(output, 2)) for prompt, output in lengths]


def simulated(profile: EngineProfile, samples: list[Sample], rate: float, seed: int) -> tuple[float, float]:
    """Mean seconds to the first token and per further one."""
    chance, now, arrivals = random.Random(seed), 0.0, list[Arrival]()
    for number, each in enumerate(samples):
        now += chance.expovariate(rate)
        arrivals.append(Arrival(now, single(f"r{number}", each.prompt, each.output)))
    run = simulate(arrivals, {"a": EngineModel(profile)}, RoundRobin(), horizon_s=0.05)
    ttfts = [each.ttft_s for each in run.outcomes if each.ttft_s is not None]
    tpots = [each.tpot_s for each in run.outcomes if each.tpot_s is not None]
    assert len(ttfts) == len(samples)
    return fmean(ttfts), fmean(tpots)


@pytest.mark.parametrize(
    ("device", "load"), [("dgx-spark", 0.2), ("dgx-spark", 0.35), ("rtx-pro-6000", 0.2), ("rtx-pro-6000", 0.5)]
)
def test_first_tokens_and_further_ones_come_about_when_they_were_foretold(device: str, load: float) -> None:
    """`load`: share of the time that prefill takes; a Spark that prefills half of its time is full of decodes."""
    profile = engine_profile(device)
    speed, samples = Simulated(profile.step_time), mix(1, 600)
    traffic = Traffic(samples)
    rate = load / fmean(speed.prefill_seconds(each.prompt) for each in samples)
    room = profile.num_blocks // profile.blocks_for(round(traffic.context))
    told = forecast(speed, room, profile.max_num_seqs, traffic, rate)
    assert told.full is None
    ttft, tpot = simulated(profile, samples, rate, seed=2)
    print(f"{device} {load:.0%}: TTFT {told.ttft:.3f} foretold, {ttft:.3f} simulated; TPOT {told.tpot:.4f}, {tpot:.4f}")
    assert told.ttft == pytest.approx(ttft, rel=0.3)
    assert told.tpot == pytest.approx(tpot, rel=0.35)
