"""Fleets and traffic for the gateway in virtual time: three kinds of devices, conversations that share prefixes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from gateway.core.estimators.prompt_tokens import Tier
from gateway.core.request import Estimate
from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Arrival, Breakdown
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.gateway_request import Caller
from gateway.sim.profile import EngineProfile, engine_profile
from gateway.sim.sequence import SimRequest
from gateway.sim.slots import SlotScheduler
from gateway.sim.text import SegmentText

MODEL = "Qwen3-30B-A3B"
WEIGHTS = {"dgx-spark": "fp8", "rtx-3090": "q4_k_m", "rtx-pro-6000": "fp8"}
MIXED = {"spark": "dgx-spark", "left": "rtx-3090", "right": "rtx-3090", "pro": "rtx-pro-6000"}
"""A fleet as people have it, by name."""


def engines_of(
    devices: dict[str, str], shape: Callable[[EngineProfile], EngineProfile] = lambda p: p
) -> dict[str, EngineModel]:
    return {name: EngineModel(shape(engine_profile(device))) for name, device in devices.items()}


def config(devices: dict[str, str], *, more: str = "", engine: str = "vllm", backend: str = "") -> str:
    """What an operator would write: names, devices and number formats, no speeds."""
    lines = ["backends:"]
    for name, device in devices.items():
        model = f"{{id: {MODEL}, weights: {WEIGHTS[device]}}}"
        lines.append(
            f"  - {{name: {name}, url: 'http://{name}.test', engine: {engine}, device: {device}, models: [{model}]{backend}}}"
        )
    return "\n".join(lines) + "\n" + more


def anybody(arrival: Arrival) -> Caller:
    return Caller(MODEL)


def knowing(arrival: Arrival) -> Caller:
    """A caller whose lengths are known for certain: estimates without error."""
    asked = arrival.request
    exact = Estimate(asked.prompt_tokens, asked.prompt_tokens, asked.output_tokens, asked.output_tokens, Tier.EXACT)
    return Caller(MODEL, max_tokens=asked.output_tokens, estimate=exact)


def single(ident: str, prompt: int, output: int, *, reason: str = "stop") -> SimRequest:
    """A request that shares nothing with any other."""
    own = hash((3, *ident.encode()))
    return SimRequest(ident, SegmentText([(own, prompt), (own + 1, output)]), prompt, output, reason)


def poisson(
    seed: int,
    rate: float,
    until_s: float,
    *,
    prompt: tuple[int, int] = (200, 3000),
    output: tuple[int, int] = (50, 300),
) -> list[Arrival]:
    """Unrelated requests, `rate` a second."""
    chance, now, arrivals = random.Random(seed), 0.0, []
    while (now := now + chance.expovariate(rate)) < until_s:
        asked = single(f"r{len(arrivals)}", chance.randint(*prompt), chance.randint(*output))
        arrivals.append(Arrival(now, asked))
    return arrivals


def conversations(seed: int, rate: float, until_s: float, *, window: int = 24_000) -> list[Arrival]:
    """Sessions begin at `rate` a second; each turn sends all that was said before, and what a few system prompts share.

    Answers are log-normal, median 150 tokens; people think for half a minute between turns.
    """
    chance, begin, arrivals = random.Random(seed), 0.0, []
    systems = [(10_000 + kind, chance.randint(500, 4000)) for kind in range(6)]
    session = 0
    while (begin := begin + chance.expovariate(rate)) < until_s:
        session += 1
        said, now = [chance.choice(systems)], begin
        for turn in range(chance.randint(1, 8)):
            question = min(8000, max(20, round(chance.lognormvariate(6.0, 1.1))))
            answer = min(1500, max(10, round(chance.lognormvariate(5.0, 0.7))))
            said.append((session * 100 + 2 * turn, question))
            prompt = sum(tokens for _, tokens in said)
            said.append((session * 100 + 2 * turn + 1, answer))
            if prompt + answer > window or now >= until_s:
                break
            asked = SimRequest(f"s{session}.{turn}", SegmentText(said), prompt, answer)
            arrivals.append(Arrival(now, asked, session=f"s{session}"))
            now += 5.0 + chance.expovariate(1 / 25.0)
    return sorted(arrivals, key=lambda each: each.at_s)
