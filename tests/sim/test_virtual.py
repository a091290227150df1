"""Runs in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from gateway.sim.baselines import RoundRobin
from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Action, Arrival, Arrived, Ended, Event, Place, Refuse, Tick, WakeAt
from gateway.sim.profile import engine_profile
from gateway.sim.virtual import simulate
from gateway.sim.virtual_clock import VirtualClock
from tests.sim.workload import arrivals, request, small_profile


def test_the_clock_jumps_and_gathers_what_is_due_together() -> None:
    clock = VirtualClock()
    for when, what in ((2.0, "late"), (1.0, "first"), (1.0, "second")):
        clock.at(when, what)
    assert (clock.advance(), clock.now) == (["first", "second"], 1.0)
    clock.at(0.5, "past")
    assert (clock.advance(), clock.now) == (["past"], 1.0)
    assert (clock.advance(), clock.now) == (["late"], 2.0)
    assert clock.advance() == []


@pytest.mark.parametrize("device", ["dgx-spark", "rtx-3090", "rtx-pro-6000"])
def test_a_lone_request_has_the_ttft_and_tpot_of_the_formulas(device: str) -> None:
    profile = engine_profile(device)
    run = simulate([Arrival(5.0, request("a", prompt=3000, output=101))], {"e": EngineModel(profile)}, RoundRobin())
    [outcome] = run.outcomes
    times = profile.step_time
    chunks = -(-3000 // profile.max_batched_tokens)
    decodes = [times.decode_s(1, 3000 + made) for made in range(1, 101)]
    assert outcome.ttft_s == pytest.approx(chunks * times.overhead_s + times.prefill_s(3000))
    assert outcome.tpot_s == pytest.approx(sum(decodes) / 100)
    assert run.makespan_s == pytest.approx(5.0 + outcome.ttft_s + sum(decodes))


def test_requests_of_one_instant_share_an_iteration() -> None:
    engine = EngineModel(small_profile(budget=512))
    run = simulate(arrivals([request("a"), request("b")]), {"e": engine}, RoundRobin())
    assert run.outcomes[0].first_token_at == run.outcomes[1].first_token_at
    assert engine.counters.steps == 10


def test_every_request_ends_and_every_engine_is_empty() -> None:
    engines = {name: EngineModel(small_profile(blocks=20, length=180)) for name in ("a", "b", "c")}
    work = arrivals((request(f"r{at}", 20 + at, 10 + at % 7, shared=16) for at in range(60)), every_s=0.05)
    run = simulate(work, engines, RoundRobin())
    assert len(run.outcomes) == 60
    assert all(outcome.finish_reason == "length" for outcome in run.outcomes)
    assert {outcome.engine for outcome in run.outcomes} == {"a", "b", "c"}
    assert not any(engine.has_work for engine in engines.values())
    assert run.makespan_s == max(outcome.finished_at or 0.0 for outcome in run.outcomes)


def test_a_second_engine_is_never_slower() -> None:
    work = arrivals(request(f"r{at}", 100, 20) for at in range(12))
    one = simulate(work, {"a": EngineModel(small_profile())}, RoundRobin())
    two = simulate(work, {name: EngineModel(small_profile()) for name in "ab"}, RoundRobin())
    assert two.makespan_s < one.makespan_s


class OneAtATime:
    """Holds the queue itself, refuses what has waited too long, looks again when something ends."""

    def __init__(self, patience_s: float) -> None:
        self.patience_s = patience_s
        self.queue: list[Arrival] = []
        self.busy = False
        self.ticks: list[float] = []

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        if isinstance(event, Arrived):
            self.queue.append(event.arrival)
            yield WakeAt(event.arrival.at_s + self.patience_s)
        elif isinstance(event, Ended):
            self.busy = False
        elif isinstance(event, Tick):
            self.ticks.append(now)
        while self.queue and now >= self.queue[0].at_s + self.patience_s:
            yield Refuse(self.queue.pop(0).request.id, "waited too long")
        if self.queue and not self.busy:
            self.busy = True
            yield Place(self.queue.pop(0).request.id, "e")


def test_a_policy_may_hold_the_queue_and_refuse() -> None:
    policy = OneAtATime(patience_s=1.0)
    engine = EngineModel(small_profile())
    run = simulate(arrivals(request(f"r{at}", 40, 30) for at in range(6)), {"e": engine}, policy)
    served = [outcome for outcome in run.outcomes if outcome.finish_reason]
    refused = [outcome for outcome in run.outcomes if outcome.refused]
    assert len(served) + len(refused) == 6
    assert served
    assert {outcome.refused for outcome in refused} == {"waited too long"}
    assert all((outcome.placed_at or 0.0) < 1.0 for outcome in served)
    assert policy.ticks == [1.0] * 6
    assert run.goodput() == len(served) / 6


def test_placing_what_is_not_waiting_is_an_error() -> None:
    class Twice:
        def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
            return [Place("a", "e"), Place("a", "e")] if isinstance(event, Arrived) else []

    with pytest.raises(KeyError):
        simulate(arrivals([request("a")]), {"e": EngineModel(small_profile())}, Twice())


def test_two_runs_are_equal_and_bulk_decoding_changes_no_lone_request() -> None:
    def run(horizon_s: float) -> list[tuple[float | None, float | None]]:
        work = arrivals((request(f"r{at}", 30, 40) for at in range(8)), every_s=5.0)
        outcomes = simulate(work, {"e": EngineModel(small_profile())}, RoundRobin(), horizon_s=horizon_s).outcomes
        return [(outcome.first_token_at, outcome.finished_at) for outcome in outcomes]

    assert run(0.0) == run(0.0)
    assert [last for _, last in run(0.5)] == pytest.approx([last for _, last in run(0.0)])
