"""Engines that break down and clients that leave, in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from gateway.sim.baselines import RoundRobin
from gateway.sim.engine_model import EngineModel, Slowdown
from gateway.sim.events import (
    Action,
    Arrival,
    Arrived,
    Breakdown,
    Event,
    Left,
    Lost,
    Place,
    Refuse,
    Tick,
    WakeAt,
    Withdraw,
)
from gateway.sim.virtual import simulate
from tests.sim.workload import arrivals, request, small_profile


class Failover:
    """Everything to `a`; what is lost there goes to `b`, and what is lost there is refused."""

    def __init__(self) -> None:
        self.seen: list[Event] = []

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        self.seen.append(event)
        if isinstance(event, Arrived):
            yield Place(event.arrival.request.id, "a")
        elif isinstance(event, Lost):
            yield Place(event.request_id, "b") if event.engine == "a" else Refuse(event.request_id, "no engine left")


def pair() -> dict[str, EngineModel]:
    return {name: EngineModel(small_profile()) for name in "ab"}


def test_what_a_crash_loses_can_be_placed_again() -> None:
    policy, engines = Failover(), pair()
    work = arrivals(request(f"r{at}", 40, 30) for at in range(3))
    run = simulate(work, engines, policy, breakdowns=[Breakdown(0.2, "a", crash=True)])
    assert [(o.engine, o.lost, o.finish_reason) for o in run.outcomes] == [("b", 1, "length")] * 3
    assert all((outcome.first_token_at or 0.0) > 0.2 for outcome in run.outcomes)
    assert not engines["a"].has_work
    assert engines["b"].counters.generated_tokens == 90


def test_a_crash_in_the_last_iteration_loses_the_answer_too() -> None:
    engines = pair()
    alone = simulate(arrivals([request("a", 40, 30)]), pair(), Failover())
    policy = Failover()
    crash = Breakdown(alone.makespan_s - 1e-6, "a", crash=True)
    run = simulate(arrivals([request("a", 40, 30)]), engines, policy, breakdowns=[crash])
    assert (run.outcomes[0].engine, run.outcomes[0].lost) == ("b", 1)


def test_a_lost_request_may_be_refused() -> None:
    run = simulate(
        arrivals([request("a", 40, 100)]),
        pair(),
        Failover(),
        breakdowns=[Breakdown(0.2, "a", crash=True), Breakdown(0.4, "b", crash=True)],
    )
    assert (run.outcomes[0].refused, run.outcomes[0].lost) == ("no engine left", 2)


def test_a_hung_engine_makes_no_progress_until_it_is_well() -> None:
    def makespan(*breakdowns: Breakdown) -> float:
        engines = {"e": EngineModel(small_profile())}
        return simulate(arrivals([request("a", 40, 60)]), engines, RoundRobin(), breakdowns=breakdowns).makespan_s

    healthy = makespan()
    hung = makespan(Breakdown(0.3, "e", hang=True), Breakdown(5.3, "e"))
    assert healthy + 4.9 < hung <= healthy + 5.0


def test_a_slowdown_lasts_from_its_moment_on() -> None:
    engines = {"e": EngineModel(small_profile())}
    healthy = simulate(arrivals([request("a", 40, 60)]), engines, RoundRobin()).makespan_s
    slow = Breakdown(healthy / 2, "e", Slowdown(decode=3.0))
    run = simulate(arrivals([request("a", 40, 60)]), engines, RoundRobin(), breakdowns=[slow])
    assert run.makespan_s == pytest.approx(2 * healthy, rel=0.1)


def test_a_client_leaves_the_queue_or_its_engine() -> None:
    class Late(Failover):
        """Places `quick` only."""

        def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
            self.seen.append(event)
            if isinstance(event, Arrived) and event.arrival.request.id == "placed":
                yield Place("placed", "a")

    policy, engines = Late(), pair()
    work = [Arrival(0.0, request(ident, 40, 400), patience_s=1.0) for ident in ("placed", "queued")]
    run = simulate(work, engines, policy)
    assert [event for event in policy.seen if isinstance(event, Left)] == [Left("placed", "a"), Left("queued", None)]
    assert all(outcome.left and outcome.finish_reason is None for outcome in run.outcomes)
    assert engines["a"].counters.aborted == 1
    assert engines["a"].scheduler.kv_usage == 0
    assert run.goodput() == 0.0


def test_a_patient_client_is_never_told_to_leave() -> None:
    policy = Failover()
    run = simulate([Arrival(0.0, request("a", 40, 5), patience_s=60.0)], pair(), policy)
    assert run.outcomes[0].finish_reason == "length"
    assert not any(isinstance(event, Left) for event in policy.seen)


def test_a_withdrawn_request_starts_over_elsewhere() -> None:
    class Impatient:
        """Takes a request back from `a` after half a second and gives it to `b`."""

        def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
            if isinstance(event, Arrived):
                return [Place("r", "a"), WakeAt(0.5)]
            return [Withdraw("r"), Place("r", "b")] if isinstance(event, Tick) else []

    engines = pair()
    run = simulate(arrivals([request("r", 40, 100)]), engines, Impatient())
    [outcome] = run.outcomes
    assert (outcome.engine, outcome.placed_at, outcome.lost, outcome.finish_reason) == ("b", 0.5, 0, "length")
    assert (outcome.first_token_at or 0.0) > 0.5
    assert (engines["a"].counters.aborted, engines["b"].counters.generated_tokens) == (1, 100)


def test_what_is_not_placed_cannot_be_withdrawn() -> None:
    class Hasty:
        def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
            return [Withdraw("r")] if isinstance(event, Arrived) else []

    with pytest.raises(KeyError):
        simulate(arrivals([request("r")]), pair(), Hasty())
