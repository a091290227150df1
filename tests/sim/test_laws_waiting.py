"""Who waits, where, and for how long: nobody starves, engines' own queues stay empty, overload is refused in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gateway.core.reasons import Reason
from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Arrival
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.gateway_request import Caller
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import (
    MODEL,
    Watched,
    anybody,
    config,
    engines_of,
    foreseen,
    single,
    stream,
    tiny_engines,
)

ONE = {"only": "rtx-3090"}
CLASSES = """
classes:
  interactive: {weight: 8}
  default: {weight: 4, kv_ceiling: 0.9}
  batch: {weight: 1, kv_ceiling: 0.6}
"""


@pytest.mark.parametrize("klass", ["interactive", "default", "batch"])
def test_a_large_request_is_served_though_small_ones_pass_by(klass: str) -> None:
    """Small ones alone keep the engine busy for ever; the large one needs most of its pool."""
    policy = GatewayPolicy.from_yaml(
        config(ONE, more=CLASSES + "queue: {wait: 10m, aging: 5s}"),
        lambda arrival: replace(foreseen(arrival), klass=klass if arrival.request.id == "large" else "interactive"),
    )
    small = stream(5, 1.4, 90.0, prompt=(500, 1500), output=(200, 600))
    arrivals = sorted([*small, Arrival(20.0, single("large", 30_000, 200))], key=lambda each: each.at_s)
    run = simulate(arrivals, engines_of(ONE), policy, horizon_s=0.1)
    large = next(outcome for outcome in run.outcomes if outcome.id == "large")
    assert large.finish_reason == "stop"
    assert large.placed_at is not None
    # It ages for 5 s; then nothing new goes in, and what runs drains.
    assert 25.0 < large.placed_at < 25.0 + 20.0
    passed = [o for o in run.outcomes if o.arrived_at > 20.0 and o.placed_at is not None and o.placed_at < 25.0]
    assert len(passed) >= 2
    assert all(outcome.finish_reason == "stop" for outcome in run.outcomes)


def test_classes_share_an_overloaded_engine_by_weight_and_none_is_left_out() -> None:
    policy = GatewayPolicy.from_yaml(
        config(ONE, more=CLASSES + "queue: {wait: 10m, length: 1000}"),
        lambda arrival: Caller(MODEL, klass=arrival.session, client=arrival.session),
    )
    classes = ("interactive", "default", "batch")
    arrivals = [Arrival(0.0, single(f"{klass}{at}", 1000, 100), session=klass) for at in range(90) for klass in classes]
    simulate(arrivals, engines_of(ONE), policy, horizon_s=0.1)
    first = Counter(lease.request.klass for lease in policy.granted[:91])
    # 8 : 4 : 1 of 91, and one dispatch in twenty to whoever waited longest.
    assert first["interactive"] == pytest.approx(56, abs=8)
    assert first["default"] == pytest.approx(28, abs=6)
    assert first["batch"] >= 6
    assert Counter(lease.request.klass for lease in policy.granted) == dict.fromkeys(classes, 90)


def test_a_backlog_of_batch_does_not_hold_up_who_comes_now_and_then() -> None:
    policy = GatewayPolicy.from_yaml(
        config(ONE, more=CLASSES + "queue: {wait: 10m, length: 1000}"),
        lambda arrival: Caller(MODEL, klass=arrival.session, client=arrival.session),
    )
    batch = [Arrival(0.0, single(f"b{at}", 1500, 200), session="batch") for at in range(120)]
    people = [Arrival(30.0 + 2.0 * at, single(f"i{at}", 1500, 200), session="interactive") for at in range(20)]
    run = simulate([*batch, *people], engines_of(ONE), policy, horizon_s=0.1)
    waits = [(o.placed_at or 1e9) - o.arrived_at for o in run.outcomes if o.id.startswith("i")]
    assert max(waits) < 8.0
    longest = max((o.placed_at or 1e9) - o.arrived_at for o in run.outcomes if o.id.startswith("b"))
    assert longest > 60.0, "there was no backlog, so nothing was shown"


@pytest.mark.parametrize("slots", [1, 4])
def test_nothing_waits_inside_an_engine_with_slots(slots: int) -> None:
    names = ("a", "b")
    seen: list[int] = []

    def look(now: float, engines: Mapping[str, EngineModel]) -> None:
        seen.extend(engine.scheduler.waiting + engine.scheduler.running for engine in engines.values())

    policy = GatewayPolicy.from_yaml(config(dict.fromkeys(names, "dgx-spark"), slotted=names), anybody)
    work = stream(2, 12.0, 12.0, prompt=(20, 250), output=(5, 80))
    run = simulate(work, tiny_engines(names, slotted=names, blocks=400, seqs=slots), Watched(policy, look))
    assert max(seen) == slots
    assert any((o.placed_at or 0.0) > o.arrived_at + 0.5 for o in run.outcomes), "the gateway held no queue"


def test_little_waits_inside_an_engine_with_pages() -> None:
    """At most the seconds of prefill that a backend may have queued, 2 by default, and the one that passes it."""
    longest: list[float] = []

    def look(now: float, engines: Mapping[str, EngineModel]) -> None:
        for engine in engines.values():
            times = engine.profile.step_time
            longest.append(
                sum(times.prefill_s(s.total - s.computed, s.computed) for s in engine.scheduler if not s.generated)
            )

    policy = GatewayPolicy.from_yaml(config(ONE), anybody)
    run = simulate(stream(3, 2.5, 60.0), engines_of(ONE), Watched(policy, look), horizon_s=0.1)
    largest = engines_of(ONE)["only"].profile.step_time.prefill_s(3000)
    # The prior of this card is 1.9 times too fast, until that is learned.
    assert max(longest) < 1.9 * 2.0 + largest
    assert any((o.placed_at or 0.0) > o.arrived_at + 2.0 for o in run.outcomes), "the gateway held no queue"


def test_ten_percent_too_much_is_refused_in_time_and_the_rest_is_served_well() -> None:
    """A queue no longer than clients wait: what is admitted is as good as under a load that the engine bears."""
    prompts, answers = (600, 1000), (100, 200)

    def play(rate: float) -> tuple[GatewayPolicy, float, float]:
        policy = GatewayPolicy.from_yaml(config(ONE, more="queue: {wait: 2s}", running="16"), anybody)
        run = simulate(stream(4, rate, 90.0, prompt=prompts, output=answers), engines_of(ONE), policy, horizon_s=0.05)
        admitted = [outcome for outcome in run.outcomes if outcome.refused is None]
        good = run.goodput(ttft_s=4.0) * len(run.outcomes) / len(admitted)
        return policy, good, len(admitted) / 90.0

    policy, good, rate = play(6.0)
    capacity = rate
    policy, good, rate = play(1.1 * capacity)
    refused = policy.declined.values()
    assert 0.02 < len(refused) / (1.1 * capacity * 90.0) < 0.25
    assert {decision.reason for decision in refused} <= {Reason.QUEUE_TIMEOUT, Reason.DEADLINE, Reason.QUEUE_FULL}
    assert all(1 <= (decision.retry_after or 0) <= 59 for decision in refused)
    assert good > 0.95
    assert rate > 0.9 * capacity
