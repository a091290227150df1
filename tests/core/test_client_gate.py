from __future__ import annotations

import math

import pytest

from gateway.core.client_book import ClientBook
from gateway.core.client_gate import ClientGate
from gateway.core.client_line import ClientLine
from gateway.core.prefix.chain import fingerprint
from gateway.core.quota import ClientLimits, Quota
from gateway.core.request import Request
from gateway.core.token_bucket import Rate
from tests.core.fleet import NOW, request

LIMITS = {"x": ClientLimits(running=2), "t": ClientLimits(rates={Quota.TOKENS: Rate(5000, 50)})}
CHAIN = fingerprint([b"hello"])


def gate(book: ClientBook | None = None, now: float = NOW) -> ClientGate:
    kept = book if book is not None else ClientBook()
    return ClientGate(LIMITS.get, lambda client, limits: kept.levels(client, limits, now))


def of(client: str, *numbers: int, **more: object) -> list[Request]:
    return [request(f"{client}{n}", client=client, **more) for n in numbers]


def passed(waiting: list[Request], now: float = NOW) -> tuple[list[str], list[str]]:
    skipped: list[str] = []
    return [each.id for each in gate().within(waiting, now, skipped.append)], skipped


def test_a_client_over_its_limit_is_passed_over_and_others_are_not() -> None:
    names, skipped = passed([*of("x", 1, 2, 3, 4), *of("y", 1, 2, 3)])
    assert names == ["x1", "x2", "y1", "y2", "y3"]
    assert set(skipped) == {"x"}


def test_tokens_are_counted_down_within_one_look() -> None:
    names, skipped = passed(of("t", 1, 2, 3, 4, 5, prompt=1000, output=200))
    assert names == ["t1", "t2", "t3", "t4"]
    assert skipped == ["t"]


def test_small_ones_behind_a_large_one_leave_it_its_turn() -> None:
    names, _ = passed([*of("t", 1, prompt=3000), *of("t", 2, prompt=4000), *of("t", 3, prompt=100)])
    assert names == ["t1"]


def test_whose_time_is_up_is_let_through_to_be_told_so() -> None:
    names, _ = passed([*of("x", 1, 2), *of("x", 3, wait=5.0)], NOW + 6)
    assert names == ["x1", "x2", "x3"]


def test_a_request_larger_than_the_bucket_passes_a_full_one() -> None:
    assert gate().short(request(client="t", prompt=80_000)) is None


def test_what_stands_before_counts() -> None:
    line = ClientLine()
    assert line.comes(request("a", client="t", prompt=4000), CHAIN, gate(), NOW) is None
    line.enter(request("a", client="t", prompt=4000))
    late = request("b", client="t", prompt=1800, output=200)
    short = line.comes(late, CHAIN, gate(), NOW)
    assert short is not None
    assert short.seconds == pytest.approx((4200 + 2000 - 5000) / 100)
    line.leave("a")
    line.leave("a")
    assert line.comes(late, CHAIN, gate(), NOW) is None


def test_those_told_to_come_back_are_told_times_one_after_another() -> None:
    book, line = ClientBook(), ClientLine()
    cost = {Quota.TOKENS: 5000.0}
    book.charge("l", "t", cost, cost, LIMITS["t"], NOW)
    told = []
    for number in range(4):
        chain = fingerprint([f"prompt {number}".encode()])
        each = request(f"r{number}", client="t", prompt=1800, output=200)
        short = line.comes(each, chain, gate(book), NOW)
        assert short is not None
        told.append(line.come_back(each, chain, short, NOW))
    assert told == [20, 40, 60, 80]
    for number, seconds in enumerate(told):
        now = NOW + (seconds or math.inf)
        chain = fingerprint([f"prompt {number}".encode()])
        each = request(f"again {number}", client="t", prompt=1800, output=200)
        assert line.comes(each, chain, gate(book, now), now) is None
        cost = {Quota.TOKENS: 2000.0}
        assert book.charge(each.id, "t", cost, cost, LIMITS["t"], now) is None


def test_a_full_bucket_serves_whoever_comes_however_many_were_told_to_come_back() -> None:
    book, line = ClientBook(), ClientLine()
    cost = {Quota.TOKENS: 5000.0}
    book.charge("l", "t", cost, cost, LIMITS["t"], NOW)
    for number in range(500):  # nobody of these does
        chain = fingerprint([f"prompt {number}".encode()])
        each = request(f"r{number}", client="t", prompt=1800, output=200)
        short = line.comes(each, chain, gate(book), NOW)
        assert short is not None
        told = line.come_back(each, chain, short, NOW)
        assert told is not None
        assert 20 <= told <= 120
    now = NOW + 50
    assert line.comes(request("late", client="t", prompt=4000), fingerprint([b"x"]), gate(book, now), now) is None


def test_requests_that_wait_are_counted_too() -> None:
    limits = {"r": ClientLimits(rates={Quota.REQUESTS: Rate(2, 20)})}
    book, line = ClientBook(), ClientLine()
    door = ClientGate(limits.get, lambda client, each: book.levels(client, each, NOW))
    for number, seconds in ((0, None), (1, None), (2, 10), (3, 20)):
        each = request(f"r{number}", client="r")
        short = line.comes(each, CHAIN, door, NOW)
        assert (short and short.seconds) == (None if seconds is None else pytest.approx(seconds))
        line.enter(each)


def test_a_later_attempt_stands_behind_nobody() -> None:
    line = ClientLine()
    line.enter(request("a", client="t", prompt=4000))
    assert line.comes(request("b", client="t", attempt=1), CHAIN, gate(), NOW) is None


def test_running_ends_when_it_ends() -> None:
    line, book = ClientLine(), ClientBook()
    for number in range(2):
        book.charge(f"{number}", "x", {}, {}, LIMITS["x"], NOW)
    each = request(client="x")
    short = line.comes(each, CHAIN, gate(book), NOW)
    assert short is not None
    assert short.quota is Quota.RUNNING
    assert line.come_back(each, CHAIN, short, NOW) is None
