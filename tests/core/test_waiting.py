from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.plan import ClassPolicy, QueueLimits
from gateway.core.waiting import Waiting
from tests.core.fleet import NOW, request

CLASSES = {
    "interactive": ClassPolicy("interactive", weight=8.0),
    "default": ClassPolicy("default", weight=4.0),
    "batch": ClassPolicy("batch", weight=1.0),
}


def waiting(**limits: float) -> Waiting:
    return Waiting(QueueLimits(**limits), CLASSES)  # type: ignore[arg-type]


def order(queue: Waiting, now: float = NOW) -> list[str]:
    return [r.id for r in queue.in_order(now)]


def serve(queue: Waiting, count: int, now: float = NOW) -> list[str]:
    """Dispatch the first `count` one after the other."""
    served = []
    for _ in range(count):
        first = next(queue.in_order(now))
        queue.remove(first.id, dispatched=True)
        served.append(first.id)
    return served


def test_first_come_first_served_inside_a_class() -> None:
    queue = waiting()
    for i in range(4):
        assert queue.offer(request(f"r{i}"))
    assert order(queue) == ["r0", "r1", "r2", "r3"]
    assert serve(queue, 4) == ["r0", "r1", "r2", "r3"]


def test_each_model_has_its_own_bound() -> None:
    queue = waiting(length=2)
    assert queue.offer(request("r1"))
    assert queue.offer(request("r2"))
    assert not queue.offer(request("r3"))
    assert queue.offer(request("r4", model="n"))
    assert queue.lengths == {"m": 2, "n": 1}
    queue.remove("r1")
    assert queue.offer(request("r3"))


def test_nothing_is_left_of_a_request_that_was_removed() -> None:
    queue = waiting()
    queue.offer(request("r1", prompt=1000, output=200))
    assert queue.work("m") == 1200
    assert queue.get("r1") is not None
    removed = queue.remove("r1")
    assert removed is not None
    assert removed.id == "r1"
    assert queue.remove("r1") is None
    assert queue.get("r1") is None
    assert (len(queue), queue.lengths, queue.length("m"), order(queue)) == (0, {}, 0, [])


def test_an_id_waits_once() -> None:
    queue = waiting()
    queue.offer(request("r1"))
    assert "r1" in queue
    with pytest.raises(ValueError, match="already waits"):
        queue.offer(request("r1"))


def test_newer_facts_keep_the_place() -> None:
    queue = waiting()
    queue.offer(request("r1"))
    queue.offer(request("r2"))
    queue.replace(request("r1", placement=9))
    first = next(queue.in_order(NOW))
    assert (first.id, first.placement) == ("r1", 9)


def test_classes_share_by_weight() -> None:
    queue = waiting()
    for i in range(60):
        for klass in CLASSES:
            queue.offer(request(f"{klass}-{i}", klass=klass))
    served = Counter(name.split("-")[0] for name in serve(queue, 39))
    assert served == {"interactive": 24, "default": 12, "batch": 3}


def test_the_order_shown_is_the_order_served() -> None:
    queue = waiting()
    for i in range(10):
        queue.offer(request(f"i{i}", klass="interactive"))
        queue.offer(request(f"b{i}", klass="batch", prompt=300))
        queue.offer(request(f"d{i}", client=f"c{i % 3}"))
    shown = order(queue)
    assert serve(queue, 30) == shown


def test_a_later_attempt_finds_a_place_in_a_full_queue() -> None:
    queue = waiting(length=1)
    assert queue.offer(request("r1"))
    assert not queue.offer(request("r2"))
    assert queue.offer(request("r3", attempt=1))


def test_one_client_does_not_starve_another() -> None:
    queue = waiting()
    for i in range(50):
        queue.offer(request(f"a{i}", client="a", prompt=4000))
    serve(queue, 10)
    queue.offer(request("b", client="b", prompt=200))
    assert "b" in order(queue)[:2]


def test_nor_when_the_flood_has_aged() -> None:
    queue = waiting(aging=15.0)
    for i in range(60):
        queue.offer(request(f"a{i}", client="a", prompt=4000, waited=20.0))
    serve(queue, 10)
    for i in range(40):
        queue.offer(request(f"b{i}", client="b", prompt=200))
    served = serve(queue, 40)
    # A whole turn of both is the flood's 4200 tokens; one dispatch in twenty is its besides.
    assert Counter(name[0] for name in served)["b"] >= 35


def test_nor_a_class_behind_the_aged_backlog_of_another() -> None:
    classes = {"high": ClassPolicy("high", weight=8.0), "low": ClassPolicy("low", weight=1.0)}
    queue = Waiting(QueueLimits(aging=15.0, length=1000), classes)
    for i in range(200):
        queue.offer(request(f"low{i}", klass="low", waited=30.0))
        queue.offer(request(f"high{i}", klass="high"))
    served = Counter(name.rstrip("0123456789") for name in serve(queue, 100))
    # Eight to one, but for the dispatches that go to the one that waited longest.
    assert 80 <= served["high"] <= 90


def test_one_that_waits_for_room_stays_in_front() -> None:
    queue = waiting(aging=15.0)
    queue.offer(request("large", klass="batch", waited=16.0))
    for i in range(50):
        queue.offer(request(f"i{i}", klass="interactive"))
    for i in range(30):
        assert order(queue)[0] == "large"
        queue.remove(f"i{i}", dispatched=True)


def test_service_is_counted_in_tokens() -> None:
    queue = waiting()
    for i in range(20):
        queue.offer(request(f"long{i}", client="a", prompt=9800, output=200))
        queue.offer(request(f"short{i}", client="b", prompt=1800, output=200))
    served = serve(queue, 12)
    assert Counter(name.rstrip("0123456789") for name in served) == {"short": 10, "long": 2}


def test_idling_earns_no_credit() -> None:
    queue = waiting()
    for i in range(40):
        queue.offer(request(f"a{i}", client="a"))
    serve(queue, 20)
    for i in range(20):
        queue.offer(request(f"b{i}", client="b"))
    served = Counter(name[0] for name in serve(queue, 10))
    assert served == {"a": 5, "b": 5}


def test_nor_does_it_after_the_queue_was_empty() -> None:
    queue = waiting()
    for i in range(20):
        queue.offer(request(f"a{i}", client="a", klass="batch"))
    serve(queue, 20)
    for i in range(20):
        queue.offer(request(f"b{i}", client="b", klass="batch"))
        queue.offer(request(f"more{i}", client="a", klass="batch"))
    assert Counter(name[0] for name in serve(queue, 21)) == {"b": 11, "m": 10}


def test_leaving_the_queue_costs_nothing() -> None:
    queue = waiting()
    for i in range(5):
        queue.offer(request(f"a{i}", client="a"))
        queue.offer(request(f"b{i}", client="b"))
    for i in range(4):
        queue.remove(f"a{i}")
    assert "a4" in order(queue)[:2]


def test_the_head_of_a_class_comes_to_the_front_once_it_has_aged() -> None:
    queue = waiting(aging=15.0)
    queue.offer(request("old", klass="batch", waited=16.0))
    queue.offer(request("older batch mate", klass="batch", waited=15.5))
    for i in range(5):
        queue.offer(request(f"i{i}", klass="interactive"))
    assert order(queue)[0] == "old"


def test_a_later_attempt_goes_before_its_client_s_new_requests() -> None:
    queue = waiting()
    queue.offer(request("new"))
    queue.offer(request("again", attempt=1, waited=5.0))
    assert order(queue) == ["again", "new"]


def test_a_client_s_requests_for_several_models_share_its_turn() -> None:
    queue = waiting()
    for i in range(4):
        queue.offer(request(f"am{i}", client="a", model="m"))
        queue.offer(request(f"an{i}", client="a", model="n"))
        queue.offer(request(f"bm{i}", client="b", model="m"))
    served = Counter(name[0] for name in serve(queue, 8))
    assert served == {"a": 4, "b": 4}


def test_a_class_without_a_policy_waits_with_the_default_weight() -> None:
    queue = waiting()
    queue.offer(request("r1", klass="unheard"))
    assert serve(queue, 1) == ["r1"]


def test_counters_of_clients_that_left_are_dropped() -> None:
    queue = waiting()
    for i in range(3000):
        queue.offer(request(f"r{i}", client=f"c{i}"))
        queue.remove(f"r{i}", dispatched=True)
    assert len(queue._shares.clients["default"].served) <= 1100


ARRIVALS = st.lists(
    st.tuples(st.sampled_from(sorted(CLASSES)), st.sampled_from("abc"), st.sampled_from("mn"), st.integers(1, 5000)),
    max_size=40,
)


@settings(deadline=None, max_examples=50)
@given(ARRIVALS, st.floats(0.0, 60.0))
def test_everyone_is_in_the_order_once(arrivals: list[tuple[str, str, str, int]], waited: float) -> None:
    queue = waiting()
    for i, (klass, client, model, prompt) in enumerate(arrivals):
        queue.offer(request(f"r{i}", klass=klass, client=client, model=model, prompt=prompt, waited=waited))
    assert sorted(order(queue)) == sorted(f"r{i}" for i in range(len(arrivals)))
    assert len(set(serve(queue, len(arrivals)))) == len(arrivals)
    assert len(queue) == 0


def test_sessions_of_one_client_share_its_part() -> None:
    """One agent's twenty children and a person at the same key: each session is served in turn."""
    queue = waiting()
    for i in range(40):
        queue.offer(request(f"agent{i}", client="a", session="agent", prompt=4000))
    queue.offer(request("person0", client="a", session="person", prompt=200))
    for i in range(40):
        queue.offer(request(f"other{i}", client="b", prompt=4000))
    assert "person0" in order(queue)[:3]
    served = Counter(name.rstrip("0123456789") for name in serve(queue, 40))
    assert served["person"] == 1
    assert abs(served["agent"] - served["other"]) <= 1


def test_within_a_session_who_is_due_first_goes_first() -> None:
    queue = waiting()
    queue.offer(request("slow", due=NOW + 30.0))
    queue.offer(request("fast", due=NOW + 5.0))
    queue.offer(request("other model", model="n", due=NOW + 10.0))
    assert order(queue) == ["fast", "other model", "slow"]


def test_service_is_what_it_took_and_not_what_was_expected() -> None:
    """Both are charged 1 s for each request; those of one client then take 3 s."""
    queue = waiting()
    for i in range(60):
        queue.offer(request(f"long{i}", client="a"))
        queue.offer(request(f"short{i}", client="b"))
    served = []
    for _ in range(40):
        first = next(queue.in_order(NOW))
        queue.remove(first.id, dispatched=True, service=1.0)
        queue.settle(first, 1.0, 3.0 if first.client == "a" else 1.0)
        served.append(first.client)
    assert Counter(served) == {"b": 30, "a": 10}


def test_a_correction_for_whoever_is_forgotten_is_none() -> None:
    queue = waiting()
    queue.settle(request("gone", client="nobody", klass="never", session="x"), 1.0, 5.0)
    queue.offer(request("r1"))
    assert serve(queue, 1) == ["r1"]


def test_the_queue_is_bounded_in_tokens_but_never_closed_to_one_that_is_alone() -> None:
    queue = waiting(tokens=5000)
    assert queue.offer(request("huge", prompt=9000, output=100))
    assert not queue.offer(request("r1", prompt=100))
    queue.remove("huge")
    assert queue.offer(request("r2", prompt=3000, output=500))
    assert queue.offer(request("r3", prompt=1000, output=500))
    assert not queue.offer(request("r4", prompt=1, output=1))
    assert queue.offer(request("r5", attempt=1))


def test_who_is_past_the_deadline_is_found_wherever_it_stands() -> None:
    queue = waiting(length=1000)
    for i in range(300):
        queue.offer(request(f"r{i}", client=f"c{i % 7}", waited=float(i % 100), wait=60.0))
    late = {f"r{i}" for i in range(300) if i % 100 >= 60}
    assert {each.id for each in queue.expired(NOW)} == late
    for name in late:
        queue.remove(name)
    assert queue.expired(NOW) == []
    assert len(queue) == 300 - len(late)


def test_models_and_clients_can_be_passed_over() -> None:
    queue = waiting()
    for i in range(50):
        queue.offer(request(f"am{i}", client="a"))
        queue.offer(request(f"bn{i}", client="b", model="n"))
        queue.offer(request(f"cn{i}", client="c", model="n"))
    line = queue.in_order(NOW)
    seen = [next(line).id for _ in range(3)]
    line.skip_model("m")
    line.skip_client("b")
    left = [each.id for each in line]
    assert sum(name.startswith("am") for name in left) <= 1, "one may be at hand already"
    assert sum(name.startswith("b") for name in left) <= 1
    assert sum(name.startswith("c") for name in seen + left) == 50


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.sampled_from("ab"), st.sampled_from(["", "s", "t"]), st.integers(1, 3000)),
        st.tuples(st.just("leave"), st.integers(0, 60), st.just(0), st.just(0)),
        st.tuples(st.just("serve"), st.floats(0.1, 5.0), st.just(0), st.just(0)),
    ),
    max_size=80,
)


@settings(deadline=None, max_examples=100)
@given(STEPS)
def test_whatever_happens_the_queue_agrees_with_itself(steps: list[tuple[str, object, object, int]]) -> None:
    queue, there, number = waiting(length=1000), dict[str, int](), 0
    for what, first, second, prompt in steps:
        if what == "come":
            number += 1
            queue.offer(request(f"r{number}", client=str(first), session=str(second) or None, prompt=prompt))
            there[f"r{number}"] = prompt + 200
        elif what == "leave":
            gone = queue.remove(f"r{first}")
            assert (gone is not None) == (there.pop(f"r{first}", None) is not None)
        elif there:
            asked = next(queue.in_order(NOW))
            queue.remove(asked.id, dispatched=True, service=float(first))  # type: ignore[arg-type]
            del there[asked.id]
        assert len(queue) == len(there)
        assert queue.work("m") == sum(there.values())
        assert sorted(order(queue)) == sorted(there)


def test_the_gap_in_service_of_two_that_always_wait_is_bounded() -> None:
    """As in the paper on virtual token counters: never more than twice the dearest request."""
    queue = waiting(length=2000)
    for i in range(400):
        queue.offer(request(f"a{i}", client="a", prompt=8000 if i % 3 else 100, output=100))
        queue.offer(request(f"b{i}", client="b", prompt=500, output=1500 if i % 5 else 10))
    got = Counter[str]()
    dearest = 8100
    for _ in range(500):
        first = next(queue.in_order(NOW))
        queue.remove(first.id, dispatched=True)
        estimate = first.estimates["m"]
        got[first.client] += estimate.prompt + estimate.output
        assert abs(got["a"] - got["b"]) <= 2 * dearest


def test_what_others_were_charged_and_may_never_take_does_not_hold_up_who_returns() -> None:
    queue = waiting()
    for i in range(10):
        queue.offer(request(f"a{i}", client="a"))
    running = next(queue.in_order(NOW))
    queue.remove(running.id, dispatched=True, service=9.0)
    queue.offer(request("b", client="b"))
    queue.settle(running, 9.0, 0.1)
    assert "b" in order(queue)[:2]
    assert queue._shares.clients["default"]._open == {}
