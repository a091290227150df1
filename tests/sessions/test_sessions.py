from __future__ import annotations

import pytest

from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.return_times import ReturnTimes
from gateway.core.sessions import Sessions
from tests.core.fleet import request

NOW = 1000.0


def chain(*parts: str) -> Chain:
    pieces = [part.encode() * 100 for part in parts]
    ends = [sum(map(len, pieces[: index + 1])) for index in range(len(pieces))]
    return fingerprint(pieces, ends)


def test_a_named_conversation_has_a_home_and_an_unnamed_one_none() -> None:
    known = Sessions()
    known.sent(request(session="s", thread=1), chain("system ", "hello "), "b1", NOW)
    known.sent(request(session=None, thread=2), chain("system ", "other "), "b1", NOW)
    assert known.home("c", "s", 1) == "b1"
    assert known.home("c", "s", 99) == "b1"  # what it begins with changed in a way that nobody foresaw
    assert known.home("c", None, 2) is None
    assert known.home("another client", "s", 1) is None


def test_a_conversation_that_moved_lives_where_it_was_last() -> None:
    known, first = Sessions(), chain("system ", "hello ")
    known.sent(request(session="s", thread=1), first, "b1", NOW)
    known.ended(first, NOW + 1.0, calls=False)
    known.sent(request(session="s", thread=1), chain("system ", "hello ", "hi "), "b2", NOW + 5.0)
    assert known.home("c", "s", 1) == "b2"


def test_prompts_that_go_on_do_not_diverge() -> None:
    known, parts = Sessions(), ["system "]
    for turn in range(5):
        parts.append(f"turn {turn} ")
        assert known.sent(request(session="s", thread=1), chain(*parts), "b", NOW + turn) is None
    assert known.diverging() == []


def test_where_prompts_part_is_told_without_their_text() -> None:
    known, found = Sessions(), []
    for turn in range(4):
        parts = ["tools and rules ", f"now it is {turn} o'clock ", "question ", *(["and on "] * turn)]
        found.append(known.sent(request(session="s", thread=1), chain(*parts), "b", NOW + turn))
    assert found[0] is None
    last = found[-1]
    assert last is not None
    assert (last.start, last.end, last.message, last.turns) == (1600, 2048, 1, 3)
    assert last.lost > 0
    assert [each.divergence for each in known.diverging()] == [last]


def test_a_compacted_conversation_is_no_divergence() -> None:
    known = Sessions()
    known.sent(request(session="s", thread=1), chain("system ", "long " * 20), "b", NOW)
    assert known.sent(request(session="s", thread=1), chain("system ", "short "), "b", NOW + 1.0) is None


def test_it_is_bounded_and_the_one_idle_longest_goes_first() -> None:
    known = Sessions()
    for number in range(10_000):
        known.sent(request(session=f"s{number}", thread=number + 1), chain("system "), "b", NOW + number * 0.01)
    assert len(known) == 8192
    assert known.home("c", "s9999", 10_000) == "b"
    assert known.home("c", "s0", 1) is None
    long = fingerprint([b"x" * 4_000_000])
    for number in range(1000):
        known.sent(request(session=f"l{number}", thread=20_000 + number), long, "b", NOW + 200 + number)
    assert 0 < len(known) < 600


def test_idle_ones_go_with_time() -> None:
    known = Sessions()
    for number in range(10):
        known.sent(request(session=f"s{number}", thread=number + 1), chain("system "), "b", NOW)
    for number in range(10, 20):
        known.sent(request(session=f"s{number}", thread=number + 1), chain("system "), "b", NOW + 10_000.0)
    assert len(known) == 10


def test_who_waits_for_a_tool_comes_back_and_less_so_the_longer_it_takes() -> None:
    times = ReturnTimes()
    soon = times.probability("c", 2.0, calls=True)
    assert soon > 0.9
    assert soon > times.probability("c", 300.0, calls=True) > times.probability("c", 1800.0, calls=True)
    assert times.probability("c", 2.0, calls=False) < soon
    assert times.probability("c", 4000.0, calls=True) == 0.0


def test_return_times_are_learned_by_client() -> None:
    times = ReturnTimes()
    before = times.probability("slow", 120.0, calls=True)
    for _ in range(100):
        times.came_back("slow", 300.0, calls=True)
        times.stayed_away("gone", calls=True)
    assert times.probability("slow", 120.0, calls=True) > max(0.95, before)
    assert times.probability("gone", 2.0, calls=True) < 0.1
    assert times.probability("new", 120.0, calls=True) == pytest.approx(before)
