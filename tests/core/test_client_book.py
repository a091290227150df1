from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.client_book import ClientBook
from gateway.core.quota import Amounts, ClientLimits, Quota
from gateway.core.token_bucket import Rate

TOKENS = ClientLimits(rates={Quota.TOKENS: Rate(1000, 100)})


def charge(book: ClientBook, lease: str, tokens: float, now: float = 0.0, limits: ClientLimits = TOKENS) -> bool:
    cost: Amounts = {Quota.TOKENS: tokens}
    return book.charge(lease, "c", cost, cost, limits, now) is None


def left(book: ClientBook, now: float = 0.0, limits: ClientLimits = TOKENS) -> float:
    return book.levels("c", limits, now).left[Quota.TOKENS]


def test_what_was_not_used_is_given_back_once() -> None:
    book = ClientBook()
    assert charge(book, "l", 400)
    assert left(book) == 600
    assert book.refund("l", {Quota.TOKENS: 150}, 0.0)
    assert left(book) == 850
    assert not book.refund("l", {Quota.TOKENS: 0}, 0.0)
    assert left(book) == 850


def test_what_was_used_beyond_is_taken_even_from_an_empty_bucket() -> None:
    book = ClientBook()
    assert charge(book, "l", 900)
    book.refund("l", {Quota.TOKENS: 1500}, 0.0)
    assert left(book) == -500


def test_a_refused_charge_takes_nothing_and_says_what_is_missing() -> None:
    book = ClientBook()
    assert charge(book, "l", 900)
    cost = {Quota.TOKENS: 300.0}
    short = book.charge("m", "c", cost, cost, TOKENS, 0.0)
    assert short is not None
    assert (short.quota, short.left, short.needed, short.amount, short.seconds) == (Quota.TOKENS, 100, 300, 1000, 20)
    assert left(book) == 100
    assert len(book) == 1
    assert not book.refund("m", {}, 0.0)


def test_x6_running_requests_are_counted_by_their_open_charges() -> None:
    book, limits = ClientBook(), ClientLimits(running=2)
    assert charge(book, "a", 0, limits=limits)
    assert charge(book, "b", 0, limits=limits)
    short = book.charge("c", "c", {}, {}, limits, 0.0)
    assert short is not None
    assert (short.quota, short.seconds) == (Quota.RUNNING, None)
    book.refund("a", {}, 0.0)
    book.refund("a", {}, 0.0)
    assert charge(book, "c", 0, limits=limits)
    assert not charge(book, "d", 0, limits=limits)


def test_g3_a_lowered_limit_counts_what_runs_already() -> None:
    book = ClientBook()
    for number in range(8):
        assert charge(book, f"{number}", 0, limits=ClientLimits())
    lower = ClientLimits(running=2)
    for number in range(7):
        assert not charge(book, "late", 0, limits=lower)
        book.refund(f"{number}", {}, 0.0)
    assert charge(book, "late", 0, limits=lower)


def test_g3_another_rate_holds_for_the_bucket_that_is_there() -> None:
    book = ClientBook()
    assert charge(book, "l", 500)
    lower = ClientLimits(rates={Quota.TOKENS: Rate(600, 100)})
    assert left(book, limits=lower) == 100
    assert not charge(book, "m", 200, limits=lower)
    book.refund("l", {Quota.TOKENS: 400}, 0.0)
    assert left(book, limits=lower) == 200


def test_a_lease_is_charged_once() -> None:
    book = ClientBook()
    assert charge(book, "l", 1)
    with pytest.raises(ValueError, match="charged already"):
        charge(book, "l", 1)


def test_idle_clients_are_forgotten() -> None:
    book = ClientBook()
    for number in range(5000):
        cost = {Quota.TOKENS: 10.0}
        book.charge(f"{number}", f"client {number}", cost, cost, TOKENS, now=number)
        book.refund(f"{number}", cost, now=number)
        assert book.buckets <= 130


def test_clients_do_not_pay_for_each_other() -> None:
    book = ClientBook()
    assert charge(book, "l", 1000)
    cost = {Quota.TOKENS: 1000.0}
    assert book.charge("m", "other", cost, cost, TOKENS, 0.0) is None


SHARED = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(("charge", "refund")), st.floats(0, 2000), st.floats(0, 30)),
    max_size=60,
)


@given(SHARED)
def test_charges_less_refunds_are_the_usage_whatever_the_order(
    steps: list[tuple[int, str, float, float]],
) -> None:
    """Against a bucket that is told of each use alone: a refused charge and a second refund leave no trace."""
    slow = ClientLimits(rates={Quota.TOKENS: Rate(1e6, 1e12)})  # does not fill in this time
    book, open_, used, now = ClientBook(), dict[int, tuple[str, float]](), 0.0, 0.0
    for number, (lease, what, amount, seconds) in enumerate(steps):
        now += seconds
        if what == "charge" and lease not in open_:
            if charge(book, f"{lease}.{number}", amount, now, slow):
                open_[lease] = f"{lease}.{number}", amount
        elif what == "refund":
            name, _ = open_.pop(lease, ("nobody's", 0.0))
            if book.refund(name, {Quota.TOKENS: amount}, now):
                used += amount
            assert not book.refund(name, {Quota.TOKENS: amount}, now)
        held = sum(expected for _, expected in open_.values())
        assert left(book, now, slow) == pytest.approx(1e6 - used - held, abs=0.1)
        assert book.levels("c", slow, now).running == len(open_) == len(book)


@given(SHARED)
def test_the_level_is_never_over_the_amount_and_one_charge_overdraws_by_no_more_than_itself(
    steps: list[tuple[int, str, float, float]],
) -> None:
    book, open_, now = ClientBook(), dict[int, tuple[str, float]](), 0.0
    for number, (lease, what, amount, seconds) in enumerate(steps):
        now += seconds
        before = left(book, now)
        if what == "charge" and lease not in open_:
            if charge(book, f"{lease}.{number}", amount, now):
                open_[lease] = f"{lease}.{number}", amount
                assert before >= min(amount, 1000) - 1e-3
            else:
                assert left(book, now) == before
        elif what == "refund" and lease in open_:
            name, expected = open_.pop(lease)
            book.refund(name, {Quota.TOKENS: min(amount, expected)}, now)
            assert left(book, now) >= before - 1e-6
        assert left(book, now) <= 1000
