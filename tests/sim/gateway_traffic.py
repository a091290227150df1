"""Fleets and traffic for the gateway in virtual time: three kinds of devices, conversations that share prefixes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from gateway.core.estimators.prompt_tokens import Tier
from gateway.core.request import Estimate
from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Action, Arrival, Event
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.gateway_request import Caller
from gateway.sim.profile import EngineProfile, engine_profile
from gateway.sim.sequence import SimRequest
from gateway.sim.slots import SlotScheduler
from gateway.sim.text import SegmentText
from tests.sim.workload import small_profile

MODEL = "Qwen3-30B-A3B"
WEIGHTS = {"dgx-spark": "fp8", "rtx-3090": "q4_k_m", "rtx-pro-6000": "fp8"}
MIXED = {"spark": "dgx-spark", "left": "rtx-3090", "right": "rtx-3090", "pro": "rtx-pro-6000"}
"""A fleet as people have it: devices by the names of their backends."""


def config(devices: Mapping[str, str], *, more: str = "", slotted: Iterable[str] = (), **keys: str) -> str:
    """What an operator would write: names, devices and number formats, no speeds. `keys` go to every backend."""
    extra = "".join(f", {key}: {value}" for key, value in keys.items())
    lines = ["backends:"]
    for name, device in devices.items():
        engine = "llama.cpp" if name in slotted else "vllm"
        model = f"{{id: {MODEL}, weights: {WEIGHTS[device]}}}"
        lines.append(
            f"  - {{name: {name}, url: 'http://{name}.test', engine: {engine}, device: {device}, "
            f"models: [{model}]{extra}}}"
        )
    return "\n".join([*lines, more, ""])


def engines_of(devices: Mapping[str, str]) -> dict[str, EngineModel]:
    """Engines as their devices run them."""
    return {name: EngineModel(engine_profile(device)) for name, device in devices.items()}


def tiny_engines(names: Iterable[str], *, slotted: Iterable[str] = (), **shape: int) -> dict[str, EngineModel]:
    """Sparks whose pool, batch and budget are tiny; the slotted ones schedule as llama.cpp does."""
    profile: EngineProfile = small_profile(**shape)
    return {name: EngineModel(profile, SlotScheduler) if name in slotted else EngineModel(profile) for name in names}


def anybody(arrival: Arrival) -> Caller:
    """Somebody of whom the gateway knows nothing."""
    return Caller(MODEL)


def foreseen(arrival: Arrival) -> Caller:
    """Somebody whose lengths are known for certain: estimates without error."""
    asked = arrival.request
    exact = Estimate(asked.prompt_tokens, asked.prompt_tokens, asked.output_tokens, asked.output_tokens, Tier.EXACT)
    return Caller(MODEL, max_tokens=asked.output_tokens, estimate=exact)


def single(ident: str, prompt: int, output: int) -> SimRequest:
    """A request that shares nothing with any other."""
    own = hash((3, *ident.encode()))
    return SimRequest(ident, SegmentText([(own, prompt), (own + 1, output)]), prompt, output)


def stream(
    seed: int,
    rate: float,
    until_s: float,
    *,
    prompt: tuple[int, int] = (200, 3000),
    output: tuple[int, int] = (50, 300),
) -> list[Arrival]:
    """Requests that share nothing, `rate` a second at random moments, of even lengths in these ranges."""
    chance, now, arrivals = random.Random(seed), 0.0, list[Arrival]()
    while (now := now + chance.expovariate(rate)) < until_s:
        asked = single(f"r{len(arrivals)}", chance.randint(*prompt), chance.randint(*output))
        arrivals.append(Arrival(now, asked))
    return arrivals


def conversations(seed: int, rate: float, until_s: float, *, window: int = 24_000) -> list[Arrival]:
    """Sessions begin at `rate` a second; each turn sends all that was said before, after one of six system prompts.

    Questions are log-normal with a median of 400 tokens, answers of 150; half a minute passes between turns.
    """
    chance, begin, arrivals = random.Random(seed), 0.0, []
    systems = [(10_000_000 + kind, chance.randint(500, 4000)) for kind in range(6)]
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


class Watched:
    """A gateway with an onlooker who sees the engines after every event, as they are before the next iteration."""

    def __init__(self, policy: GatewayPolicy, look: Callable[[float, Mapping[str, EngineModel]], None]) -> None:
        self.policy = policy
        self._look = look

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        self._look(now, engines)
        return self.policy.on_event(now, event, engines)


def ledger_is_empty(policy: GatewayPolicy, names: Iterable[str], now: float) -> bool:
    """Nothing is held, booked or waiting; what fades (the pressure of past prefills) does not count."""
    ledger = policy.desk.ledger
    ledger.expire(now)
    sums = []
    for name in names:
        t = ledger.totals(name, now)
        sums.append((t.running, t.reserved, t.decoding, t.resident, t.backlog, t.overcommitted, t.lingering))
    idle = not len(ledger) and not len(policy.desk) and not len(policy.desk.waiting)
    return idle and all(not any(each) for each in sums)
