from __future__ import annotations

from dataclasses import replace
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.admission import with_admitted, with_claim
from gateway.core.decide import decide
from gateway.core.decision import Decision, Verdict
from gateway.core.plan import QueueLimits, Route
from gateway.core.pump import pump
from gateway.core.reasons import Reason
from gateway.core.request import Estimate, Hit, Request
from gateway.core.snapshot import Health, Snapshot
from tests.core.fleet import NOW, hit, offer, plan, request, snapshot, view


def run(queue: list[Request], fleet: Snapshot, **limits: float) -> list[Decision]:
    return pump(plan(queue=QueueLimits(**limits)), queue, fleet, NOW, lambda: 0.0)  # type: ignore[arg-type]


def admitted(decisions: list[Decision]) -> list[tuple[str, str | None]]:
    return [(d.request, d.backend) for d in decisions if d.verdict is Verdict.ADMIT]


def test_each_admission_takes_its_room() -> None:
    decisions = run([request(f"r{i}", output=400) for i in range(4)], snapshot(view("a", slots=2)))
    assert [d.verdict for d in decisions] == [Verdict.ADMIT, Verdict.ADMIT, Verdict.WAIT]


def test_prefill_sent_a_moment_ago_closes_the_backend() -> None:
    queue = [request(f"r{i}", prompt=6000) for i in range(4)]
    decisions = run(queue, snapshot(view("a")))
    # 1.2 s each: two stay below the bound of 2 s, and the one that passes it is the last to go in.
    assert [d.verdict for d in decisions] == [Verdict.ADMIT, Verdict.ADMIT, Verdict.WAIT]
    assert decisions[2].trace.candidates[0].reason is Reason.PREFILL_BACKLOG


def test_requests_spread_as_backends_fill() -> None:
    decisions = run([request(f"r{i}", prompt=4000) for i in range(4)], snapshot(view("a"), view("b")))
    assert sorted(str(backend) for _, backend in admitted(decisions)) == ["a", "a", "b", "b"]


def test_a_small_one_passes_a_large_one_that_does_not_fit() -> None:
    fleet = snapshot(view("a", pool=50_000, running=1, reserved=30_000, decoding=1))
    decisions = run([request("large", prompt=20_000), request("small", prompt=1000)], fleet)
    assert admitted(decisions) == [("small", "a")]


def test_but_not_once_the_large_one_has_aged() -> None:
    fleet = snapshot(view("a", pool=50_000, running=1, reserved=30_000, decoding=1))
    decisions = run([request("large", prompt=20_000, waited=16.0), request("small", prompt=1000)], fleet)
    assert admitted(decisions) == []
    assert [d.verdict for d in decisions] == [Verdict.WAIT, Verdict.WAIT]


def test_room_set_aside_is_on_one_backend_only() -> None:
    full = {"pool": 50_000, "running": 1, "reserved": 30_000, "decoding": 1}
    fleet = snapshot(view("a", **full), view("b", **full))
    decisions = run([request("large", prompt=20_000, waited=16.0), request("small", prompt=1000)], fleet)
    assert [name for name, _ in admitted(decisions)] == ["small"]


def test_who_is_past_the_deadline_is_shed() -> None:
    decisions = run([request("late", waited=60.0), request("now")], snapshot(view("a")))
    assert [(d.request, d.verdict, d.reason) for d in decisions] == [
        ("late", Verdict.SHED, Reason.QUEUE_TIMEOUT),
        ("now", Verdict.ADMIT, Reason.ADMITTED),
    ]
    assert decisions[0].retry_after == 5


def test_who_can_never_be_served_is_refused_with_the_reason() -> None:
    decisions = run([request("long", prompt=90_000)], snapshot(view("a")))
    assert [(d.verdict, d.reason, d.limit) for d in decisions] == [(Verdict.REJECT, Reason.CONTEXT_TOO_LONG, 32_768)]


def test_a_dead_fleet_refuses_and_a_loading_one_keeps_waiting() -> None:
    assert run([request()], snapshot(view("a", health=Health.DOWN)))[0].verdict is Verdict.REJECT
    assert run([request()], snapshot(view("a", health=Health.LOADING)))[0].verdict is Verdict.WAIT


def test_the_scan_ends_after_so_many_waiting_ones_of_a_model() -> None:
    full = {"running": 1, "reserved": 45_500, "decoding": 1, "pool": 50_000}
    fleet = snapshot(view("a", offers=(offer("m"), offer("n")), **full), view("b", offers=(offer("n"),)))
    queue = [request(f"m{i}") for i in range(5)] + [request("late", waited=60.0), request("n0", model="n")]
    passed: list[str] = []
    decisions = pump(plan(queue=QueueLimits(scan=3)), queue, fleet, NOW, lambda: 0.0, skip=passed.append)
    assert [d.request for d in decisions] == ["m0", "m1", "m2", "late", "n0"]
    assert decisions[-1].reason is Reason.UNKNOWN_MODEL
    assert passed == ["m"]


def test_or_after_one_when_no_backend_takes_anything_however_small() -> None:
    fleet = snapshot(view("a", slots=1, running=1, reserved=1000), view("b", health=Health.DOWN))
    queue = [request(f"m{i}") for i in range(5)]
    passed: list[str] = []
    decisions = pump(plan(), queue, fleet, NOW, lambda: 0.0, skip=passed.append)
    assert [d.request for d in decisions] == ["m0"]
    assert passed == ["m"]


def test_but_not_where_another_request_might_go_elsewhere() -> None:
    """Too long for the one that has room, or with consent to a fallback: that says nothing of the next request."""
    closed = view("a", slots=1, running=1, reserved=1000)
    small = view("small", offers=(offer(window=2000),))
    assert admitted(run([request("long", prompt=8000), request("short")], snapshot(closed, small))) == [
        ("short", "small")
    ]
    fallback = plan(Route("m", "m", fallback=("n",)))
    both = {"m": Estimate(1000, 1000, 200, 200), "n": Estimate(1000, 1000, 200, 200)}
    queue = [request(f"r{i}", estimates=both) for i in range(3)]
    assert len(pump(fallback, queue, snapshot(closed), NOW, lambda: 0.0)) == 3


def test_admitted_ones_do_not_count_against_the_scan() -> None:
    fleet = snapshot(view("a", slots=20, queued_prefill=100.0))
    assert len(admitted(run([request(f"r{i}") for i in range(20)], fleet, scan=2))) == 20


def test_rolls_may_come_from_a_journal() -> None:
    fleet = snapshot(view("a"), view("b"))
    queue = [request("r1"), request("r2")]
    decisions = pump(plan(), queue, fleet, NOW, [0.9, 0.25])
    assert [d.roll for d in decisions] == [0.9, 0.25]
    assert pump(plan(), queue, fleet, NOW, repeat(0.5)) == pump(plan(), queue, fleet, NOW, lambda: 0.5)


def test_a_warm_backend_is_waited_for_while_others_pass_to_the_cold_one() -> None:
    fleet = snapshot(view("cold"), view("warm", running=1, reserved=30_000, backlog=2.5))
    queue = [request("session", prompt=30_000, output=50, hits={"warm": hit(0.99)}), request("other", prompt=500)]
    decisions = run(queue, fleet)
    assert decisions[0].reason is Reason.WORTH_WAITING
    assert admitted(decisions) == [("other", "cold")]


def test_of_a_crowd_the_first_wait_for_the_better_backend_and_the_others_start_on_the_worse() -> None:
    """Each would gain by waiting if it were alone; behind the others it would not."""
    fleet = snapshot(
        view("fast", slots=8, running=8, decoding=8, reserved=8000),
        view("slow", offers=(offer(step=0.06),), slots=64, queued_prefill=1e6),
    )
    alone = run([request("r", prompt=200)], fleet)
    assert alone[0].reason is Reason.WORTH_WAITING
    crowd = [request(f"r{i}", prompt=200) for i in range(12)]
    decisions = run(crowd, fleet, scan=64)
    waiting = [d for d in decisions if d.reason is Reason.WORTH_WAITING]
    assert decisions[0].reason is Reason.WORTH_WAITING
    assert 1 <= len(waiting) <= 6
    assert {backend for _, backend in admitted(decisions)} == {"slow"}


def test_only_what_is_decided_upon_is_brought_up_to_date() -> None:
    full = {"running": 1, "reserved": 45_500, "decoding": 1, "pool": 50_000}
    fleet = snapshot(view("a", **full), view("b", **full))
    queue = [request("late", waited=60.0), *(request(f"r{i}") for i in range(5))]
    seen: list[str] = []

    def refresh(stale: Request) -> Request:
        seen.append(stale.id)
        return replace(stale, hits={"b": hit(0.5)})

    decisions = pump(plan(queue=QueueLimits(scan=2)), queue, fleet, NOW, lambda: 0.0, refresh)
    assert seen == ["r0", "r1"]
    cached = [c.footprint.cached for c in decisions[1].trace.candidates if c.footprint is not None]
    assert cached[0] == 0 < cached[1]


@pytest.mark.parametrize("pinned", [0.0, 0.9])
def test_what_needs_more_than_is_free_anywhere_waits_unweighed_and_smaller_ones_are_found(pinned: float) -> None:
    full = {"running": 1, "decoding": 1, "pool": 50_000}
    fleet = snapshot(view("a", reserved=45_000, **full), view("b", reserved=43_000, **full))
    hits = {"b": Hit(0.9, 1.0, pinned)} if pinned else {}
    large = [request(f"large{i}", prompt=9000, hits=hits) for i in range(4)]
    decisions = run([*large, request("small", prompt=500, output=100)], fleet)
    weighed = [d.request for d in decisions if d.trace.candidates]
    if pinned:
        assert "large1" in weighed, "a running request holds most of its prompt, so little more is needed"
    else:
        assert weighed == ["large0", "small"]
        assert all(d.reason is Reason.QUEUED for d in decisions[:4])
    assert admitted(decisions)[-1][0] == "small"


@given(
    st.lists(st.tuples(st.integers(1, 12_000), st.integers(1, 2000), st.floats(0.0, 20.0)), max_size=24),
    st.integers(20_000, 46_000),
)
def test_the_short_cuts_change_nothing(asked: list[tuple[int, int, float]], reserved: int) -> None:
    """Each request gets the verdict that it would get if everybody were weighed."""
    fleet = snapshot(
        view("a", pool=50_000, running=2, reserved=reserved, decoding=2),
        view("b", pool=50_000, running=2, reserved=46_000 - reserved // 4, decoding=2, slots=4),
    )
    queue = [
        request(f"r{i}", prompt=prompt, output=output, waited=waited)
        for i, (prompt, output, waited) in enumerate(asked)
    ]
    policy = plan(queue=QueueLimits(scan=100))
    short = {d.request: (d.verdict, d.backend) for d in pump(policy, queue, fleet, NOW, lambda: 0.5)}
    now = fleet
    for each in queue:
        decision = decide(policy, each, now, NOW, 0.5)
        assert short.get(each.id, (Verdict.WAIT, None)) == (decision.verdict, decision.backend)
        if decision.verdict is Verdict.ADMIT:
            now = with_admitted(now, decision)
        elif decision.reason is Reason.QUEUED and each.arrival < NOW - policy.queue.aging:
            claimed = min((c.total, c.backend, c) for c in decision.trace.candidates if c.total is not None)[2]
            assert claimed.footprint is not None
            now = with_claim(now, claimed.backend, claimed.footprint, claimed.model)
