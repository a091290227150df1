from __future__ import annotations

import pytest

from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.prefix.leaders import Leaders

START = b"the same start " * 2000
HERE = "a\nm"


def chain(own: str = "", start: bytes = START) -> Chain:
    return fingerprint([start, own.encode()], [len(start), len(start) + len(own)])


def ahead(leaders: Leaders, asked: Chain, holder: str = HERE) -> tuple[float, float | None]:
    """The part of the prompt that is being read, and when it should be."""
    shared, leader = leaders.ahead(holder, asked)
    return round(shared / asked.total, 1), leader.ready if leader is not None else None


def test_a_prompt_that_is_being_read_is_ahead_of_those_that_start_like_it() -> None:
    leaders = Leaders()
    leaders.begin(HERE, "l1", chain("one"), 10.0, 14.0)
    assert ahead(leaders, chain("two")) == (1.0, 14.0)
    assert ahead(leaders, chain("two"), "b\nm") == (0.0, None)
    assert ahead(leaders, chain("two", b"another start " * 2000)) == (0.0, None)
    leaders.end(HERE, "l1")
    assert ahead(leaders, chain("two")) == (0.0, None)
    assert len(leaders) == 0


def test_of_several_the_one_that_shares_most_and_then_the_first_that_is_done() -> None:
    leaders = Leaders()
    leaders.begin(HERE, "half", chain("", START[: len(START) // 2]), 10.0, 11.0)
    assert ahead(leaders, chain("two")) == (0.5, 11.0)
    leaders.begin(HERE, "late", chain("one"), 10.0, 15.0)
    leaders.begin(HERE, "soon", chain("three"), 10.0, 14.0)
    assert ahead(leaders, chain("two")) == (1.0, 14.0)


def test_what_is_about_to_be_sent_leads_until_all_is_decided() -> None:
    leaders = Leaders()
    leaders.expect(HERE, "r1", chain("one"), 10.0, 14.0)
    assert ahead(leaders, chain("two")) == (1.0, 14.0)
    leaders.settled()
    assert ahead(leaders, chain("two")) == (0.0, None)
    assert len(leaders) == 0


def test_a_first_token_that_nobody_sees_is_taken_for_come_when_it_is_half_as_late_again() -> None:
    leaders = Leaders()
    whole, streamed = chain("one"), chain("two")
    leaders.begin(HERE, "whole", whole, 10.0, 14.0, seen=False)
    leaders.begin(HERE, "streamed", streamed, 10.0, 14.0)
    assert leaders.read_unseen(15.9) == []
    assert leaders.read_unseen(16.0) == [(HERE, whole)]
    assert leaders.read_unseen(99.0) == []
    assert len(leaders) == 1


@pytest.mark.parametrize("seen", [True, False])
def test_an_engine_that_restarted_reads_nothing(seen: bool) -> None:
    leaders = Leaders()
    leaders.begin(HERE, "l1", chain("one"), 10.0, 14.0, seen=seen)
    leaders.forget(HERE)
    leaders.end(HERE, "l1")
    assert len(leaders) == 0
    assert leaders.read_unseen(99.0) == []


def test_its_version_grows_with_every_change_and_with_none_else() -> None:
    leaders = Leaders()
    seen = [leaders.version]
    for change in (
        lambda: leaders.begin(HERE, "l1", chain("one"), 10.0, 14.0),
        lambda: leaders.expect(HERE, "r2", chain("two"), 10.0, 14.0),
        leaders.settled,
        lambda: leaders.end(HERE, "l1"),
    ):
        change()
        assert leaders.version > seen[-1]
        seen.append(leaders.version)
    leaders.end(HERE, "l1")
    leaders.settled()
    leaders.ahead(HERE, chain("two"))
    assert leaders.version == seen[-1]
