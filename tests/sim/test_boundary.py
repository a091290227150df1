"""The data boundary in virtual time: random fleets, labels, consents, faults, and another file in the middle."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gateway.config.compile import compile_policy
from gateway.config.endpoint import endpoints
from gateway.config.load import load
from gateway.core.boundary import Label
from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Action, Arrival, Breakdown, Event, Place
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.gateway_request import Caller
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import single
from tests.sim.workload import small_profile

SPAN, RELOAD = 12.0, 5.0
SEEDS = range(30)
LABELS = [label.name.lower() for label in Label]
MODELS = ("Qwen3-30B-A3B", "Qwen3-8B")


def written(chance: random.Random, names: Iterable[str]) -> str:
    """A file that may be used: each model has a backend that is cleared for its label."""
    label, lines = chance.choice(LABELS[:3]), []
    for number, name in enumerate(names):
        away = chance.random() < 0.4 and number > 1
        cleared = chance.choice(LABELS[:3] if away else LABELS) if number > 1 else chance.choice(LABELS[2:])
        lines.append(
            f"  - {{name: {name}, url: 'http://{name}.test', engine: vllm, device: dgx-spark, "
            f"location: {'off-prem' if away else 'on-prem'}, clearance: {cleared}, "
            f"timeouts: {{first_token: 2s, token_gap: 1s}}, models: [{{id: {MODELS[number % 2]}, weights: fp8}}]}}"
        )
    consent = chance.choice(("none", "quant", "any", "any", "any"))
    route = f"{{name: {MODELS[0]}, serves: {MODELS[0]}, fallback: [{MODELS[1]}], consent: {consent}, data: {label}}}"
    return "\n".join(["backends:", *lines, f"models: [{route}]", "queue: {wait: 3s}"])


class Reloaded:
    """A gateway whose file changes once, and an onlooker who sees where it sends what."""

    def __init__(self, policy: GatewayPolicy, later: str, labels: Mapping[str, Label]) -> None:
        self.policy, self._later, self._labels = policy, later, labels
        self.sent: list[tuple[str, str, Label, Label]] = []
        self._changed = False

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        desk = self.policy.desk
        if now >= RELOAD and not self._changed:
            self._changed = True
            loaded = load(self._later).policy
            desk.plan = compile_policy(loaded)
            desk.fleet.roster.apply(desk.plan, endpoints(loaded))
            desk.door.replan(desk.plan)
        for action in self.policy.on_event(now, event, engines):
            if isinstance(action, Place):
                route = desk.plan.routes[MODELS[0]]
                bound = max(self._labels[action.request_id], route.label)
                cleared = desk.fleet.roster[action.engine].backend.clearance
                self.sent.append((action.request_id, action.engine, bound, cleared))
            yield action


def life(seed: int) -> tuple[list[tuple[str, str, Label, Label]], int]:
    """What was sent where, and how many requests were sent more than once."""
    chance = random.Random(seed)
    names = [f"b{number}" for number in range(chance.randint(3, 6))]
    arrivals = sorted(
        (Arrival(chance.uniform(0.0, SPAN), single(f"r{n}", 40, chance.randint(4, 60))) for n in range(16)),
        key=lambda each: each.at_s,
    )
    labels = {each.request.id: chance.choice(list(Label)) for each in arrivals}
    faults = [
        Breakdown(
            chance.uniform(0.0, SPAN), chance.choice(names), hang=chance.random() < 0.5, crash=chance.random() < 0.6
        )
        for _ in range(4)
    ]
    if chance.random() < 0.5:  # all of the model that is asked for, so that the other one has to do
        gone = chance.uniform(1.0, 6.0)
        faults += [Breakdown(gone, name, hang=True, crash=True) for name in names[::2]]
    engines = {
        name: EngineModel(replace(small_profile(length=512, seqs=2), model=MODELS[number % 2]))
        for number, name in enumerate(names)
    }
    policy = load(written(chance, names)).policy
    gateway = GatewayPolicy(
        compile_policy(policy), endpoints(policy),
        lambda arrival: Caller(MODELS[0], label=labels[arrival.request.id]), breakdowns=faults, seed=seed,
    )  # fmt: skip
    watched = Reloaded(gateway, written(chance, names), labels)
    simulate(arrivals, engines, watched, breakdowns=faults, horizon_s=0.2)
    times = [sum(each[0] == one for each in watched.sent) for one in labels]
    return watched.sent, sum(count > 1 for count in times)


def test_nothing_is_placed_below_its_label() -> None:
    sent = again = 0
    for seed in SEEDS:
        placed, retried = life(seed)
        assert [each for each in placed if each[2] > each[3]] == [], seed
        sent, again = sent + len(placed), again + retried
    assert sent > 100
    assert again > 0
