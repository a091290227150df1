from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.footprint import Footprint
from gateway.core.ledger import Ledger, Limits, Refused, Reserved, Totals
from gateway.core.reasons import Reason

LIMITS = Limits(kv=920, alone=1000, sequences=4, backlog=2.0)


def footprint(kv: int = 100, prompt: int = 80, output: int = 20, sequences: int = 1) -> Footprint:
    return Footprint(prompt, prompt, 0, prompt, output, output, None, kv, kv * 1000, sequences)


def test_an_answer_reserves_no_more_than_it_can_ever_hold() -> None:
    ledger = Ledger()
    limits = Limits(kv=160, alone=1000, sequences=4, backlog=2.0)
    for lease in ("l1", "l2"):
        ledger.reserve(lease, "a", footprint(kv=75)._replace(ceiling=80), 0.5, limits, now=10.0)
        ledger.first_token(lease, 10.1)
        assert ledger.grow(lease, 19)
        assert ledger.extend(lease, 256, limits)
    assert ledger.totals("a", 10.2).reserved == 160
    assert ledger.extend("l1", 256, limits), "there is nothing to ask for, so nothing to deny"
    assert not ledger.totals("a", 10.2).overcommitted


def test_a_lease_shows_in_the_totals_of_its_backend_alone() -> None:
    ledger = Ledger()
    answer = ledger.reserve("l1", "a", footprint(kv=100), 0.5, LIMITS, now=10.0)
    assert isinstance(answer, Reserved)
    assert answer.totals == Totals(
        running=1, reserved=100, backlog=0.5, prefill_pressure=0.5, holdable=100, contexts=80
    )
    assert ledger.totals("b", 10.0) == Totals()
    assert "l1" in ledger
    assert ledger.open_on("a") == ["l1"]


def test_the_first_token_moves_it_from_prefill_to_decode() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(prompt=80), 0.5, LIMITS, now=10.0)
    assert ledger.first_token("l1", 10.6)
    totals = ledger.totals("a", 10.6)
    assert (totals.decoding, totals.resident, totals.backlog) == (1, 80, 0.0)
    assert not ledger.first_token("l1", 10.7)


def test_output_makes_the_context_grow_and_asks_for_more_room_at_nine_tenths() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(prompt=80, output=20), 0.5, LIMITS, now=0.0)
    ledger.first_token("l1", 0.5)
    assert not ledger.grow("l1", 17)
    assert ledger.grow("l1", 1)
    assert ledger.totals("a", 1.0).resident == 98
    assert ledger.extend("l1", 40, LIMITS)
    assert not ledger.grow("l1", 1)
    assert ledger.totals("a", 1.0).reserved == 140


@pytest.mark.parametrize(
    ("held", "wanted", "reason", "limit", "needed"),
    [
        (footprint(kv=850), footprint(kv=80), Reason.KV_FULL, 70, 80),
        (footprint(kv=10, sequences=3), footprint(kv=10, sequences=2), Reason.SLOTS_FULL, 4, 5),
    ],
)
def test_what_has_no_room_is_not_entered(
    held: Footprint, wanted: Footprint, reason: Reason, limit: float, needed: float
) -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", held, 0.0, LIMITS, now=0.0)
    before = ledger.totals("a", 0.0)
    answer = ledger.reserve("l2", "a", wanted, 0.0, LIMITS, now=0.0)
    assert answer == Refused(reason, limit, needed, before)
    assert ledger.totals("a", 0.0) == before
    assert "l2" not in ledger


def test_queued_prefill_closes_a_backend_until_it_is_worked_off() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(kv=10), 3.0, LIMITS, now=0.0)
    refused = ledger.reserve("l2", "a", footprint(kv=10), 1.0, LIMITS, now=0.5)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.limit, refused.needed) == (Reason.PREFILL_BACKLOG, 2.0, 2.5)
    assert isinstance(ledger.reserve("l2", "a", footprint(kv=10), 1.0, LIMITS, now=1.0), Reserved)


def test_time_works_off_the_first_prefill_only() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(kv=10), 1.0, LIMITS, now=0.0)
    ledger.reserve("l2", "a", footprint(kv=10), 1.0, LIMITS, now=0.0)
    assert ledger.totals("a", 0.25).backlog == pytest.approx(1.75)
    # The first one is late: the second has not begun.
    assert ledger.totals("a", 5.0).backlog == pytest.approx(1.0)
    ledger.first_token("l1", 5.0)
    assert ledger.totals("a", 5.5).backlog == pytest.approx(0.5)


def test_alone_a_request_may_fill_the_pool() -> None:
    ledger = Ledger()
    assert isinstance(ledger.reserve("l1", "a", footprint(kv=1000), 0.0, LIMITS, now=0.0), Reserved)
    assert isinstance(ledger.reserve("l2", "a", footprint(kv=1), 0.0, LIMITS, now=0.0), Refused)


def test_without_a_known_pool_slots_alone_bound_it() -> None:
    ledger, limits = Ledger(), Limits(None, None, 2, 9.0)
    answers = [ledger.reserve(f"l{i}", "a", footprint(kv=10**9), 0.0, limits, now=0.0) for i in range(3)]
    assert [type(answer) for answer in answers] == [Reserved, Reserved, Refused]


def test_a_denied_extension_closes_the_backend_until_the_lease_ends() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(kv=500), 0.0, LIMITS, now=0.0)
    ledger.reserve("l2", "a", footprint(kv=400), 0.0, LIMITS, now=0.0)
    assert not ledger.extend("l1", 100, LIMITS)
    assert not ledger.extend("l1", 100, LIMITS)
    assert ledger.totals("a", 0.0).overcommitted
    refused = ledger.reserve("l3", "a", footprint(kv=1), 0.0, LIMITS, now=0.0)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.KV_FULL
    ledger.settle("l1", 1.0)
    assert not ledger.totals("a", 1.0).overcommitted


def test_an_extension_that_fits_later_opens_it_again() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(kv=500), 0.0, LIMITS, now=0.0)
    ledger.reserve("l2", "a", footprint(kv=400), 0.0, LIMITS, now=0.0)
    assert not ledger.extend("l1", 100, LIMITS)
    ledger.settle("l2", 1.0)
    assert ledger.extend("l1", 100, LIMITS)
    assert not ledger.totals("a", 1.0).overcommitted


def test_a_lease_is_settled_once() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(), 0.5, LIMITS, now=0.0)
    assert ledger.settle("l1", 1.0)
    assert not ledger.settle("l1", 1.0)
    assert not ledger.settle("never", 1.0)
    assert len(ledger) == 0


def test_one_id_can_be_open_once_only() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(), 0.5, LIMITS, now=0.0)
    with pytest.raises(ValueError, match="already open"):
        ledger.reserve("l1", "b", footprint(), 0.5, LIMITS, now=0.0)


def test_events_of_a_settled_lease_change_nothing() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(), 0.0, LIMITS, now=0.0)
    ledger.settle("l1", 1.0)
    assert not ledger.first_token("l1", 2.0)
    assert not ledger.grow("l1", 5)
    assert not ledger.extend("l1", 5, LIMITS)
    assert ledger.totals("a", 2.0) == Totals()


def test_pressure_fades_with_a_time_constant_of_twenty_seconds() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(), 4.0, LIMITS, now=0.0)
    ledger.first_token("l1", 4.0)
    assert ledger.totals("a", 20.0).prefill_pressure == pytest.approx(4.0 / math.e)


def test_after_an_abort_the_place_stays_booked_until_the_engine_lets_go() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(kv=300), 0.0, LIMITS, now=0.0)
    ledger.reserve("l2", "a", footprint(kv=100), 0.0, LIMITS, now=0.0)
    assert ledger.settle("l1", 1.0, linger_until=31.0)
    totals = ledger.totals("a", 1.0)
    assert (totals.running, totals.reserved, totals.lingering, totals.decoding) == (2, 400, 1, 0)
    assert ledger.observe("a", engine_running=2) == 0
    assert ledger.observe("a", engine_running=1) == 1
    assert ledger.totals("a", 2.0).reserved == 100
    assert not ledger.settle("l1", 2.0)
    assert not ledger.release("l1")


def abandoned(ledger: Ledger, *names: str, at: float = 10.0, others: int = 0) -> None:
    for name in names:
        ledger.reserve(name, "a", footprint(kv=100), 0.0, LIMITS, now=0.0)
    for name in names:
        ledger.settle(name, at, linger_until=at + 30.0, others=others)


def test_several_aborts_at_once_are_given_back_one_by_one_as_the_engine_lets_go() -> None:
    ledger = Ledger()
    abandoned(ledger, "l1", "l2", "l3")
    assert [ledger.observe("a", running, 11.0) for running in (3, 2, 2, 0)] == [0, 1, 0, 2]
    assert ledger.totals("a", 11.0).running == 0


def test_what_others_run_is_not_taken_for_what_was_abandoned() -> None:
    ledger = Ledger()
    abandoned(ledger, "l1", others=2)
    assert ledger.observe("a", engine_running=3, asked=11.0) == 0
    assert ledger.observe("a", engine_running=2, asked=12.0) == 1


def test_what_was_sent_since_the_engine_was_asked_says_nothing_of_what_was_abandoned() -> None:
    ledger = Ledger()
    abandoned(ledger, "l1")
    ledger.reserve("l2", "a", footprint(kv=100), 0.0, LIMITS, now=11.0)
    assert ledger.observe("a", engine_running=1, asked=11.1) == 0
    assert ledger.observe("a", engine_running=1, asked=12.0) == 1


def test_nor_does_what_the_engine_said_before_the_abort() -> None:
    ledger = Ledger()
    abandoned(ledger, "l1")
    assert ledger.observe("a", engine_running=0, asked=9.9) == 0
    assert ledger.observe("a", engine_running=0, asked=10.0) == 1


def test_lingering_ends_at_its_bound() -> None:
    ledger = Ledger()
    ledger.reserve("l1", "a", footprint(), 0.0, LIMITS, now=0.0)
    ledger.settle("l1", 1.0, linger_until=31.0)
    assert ledger.expire(30.9) == 0
    assert ledger.expire(31.0) == 1
    assert ledger.totals("a", 31.0).running == 0


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "first", "grow", "extend", "settle", "linger", "observe", "expire", "release"]),
        st.integers(0, 9),
        st.integers(1, 400),
        st.integers(1, 3),
        st.floats(0.0, 3.0),
    ),
    max_size=120,
)


@settings(deadline=None)
@given(OPERATIONS)
def test_whatever_happens_limits_hold_and_totals_return_to_zero(
    operations: list[tuple[str, int, int, int, float]],
) -> None:
    ledger, now = Ledger(), 0.0
    for kind, number, size, sequences, step in operations:
        lease, backend = f"l{number}", "ab"[number % 2]
        now += step
        if kind == "reserve" and lease not in ledger:
            wanted = footprint(kv=size, prompt=size, output=size, sequences=sequences)
            ledger.reserve(lease, backend, wanted, step, LIMITS, now)
        elif kind == "first":
            ledger.first_token(lease, now)
        elif kind == "grow":
            ledger.grow(lease, size)
        elif kind == "extend":
            ledger.extend(lease, size, LIMITS)
        elif kind == "settle":
            was_open = lease in ledger
            assert ledger.settle(lease, now) is was_open
            assert not ledger.settle(lease, now)
        elif kind == "linger":
            ledger.settle(lease, now, linger_until=now + 5.0)
        elif kind == "observe":
            ledger.observe(backend, sequences)
        elif kind == "expire":
            ledger.expire(now)
        elif kind == "release":
            ledger.release(lease)
        for name in "ab":
            totals = ledger.totals(name, now)
            assert 0 <= totals.reserved <= 1000
            assert 0 <= totals.decoding <= totals.running <= 4
            assert totals.resident >= 0
            assert totals.backlog >= 0.0
    for number in range(10):
        ledger.settle(f"l{number}", now)
    ledger.expire(math.inf)
    later = now + 10_000.0
    for name in "ab":
        totals = ledger.totals(name, later)
        assert totals.prefill_pressure < 1e-9
        assert (totals.running, totals.reserved, totals.decoding, totals.resident) == (0, 0, 0, 0)
        assert (totals.backlog, totals.overcommitted, totals.lingering) == (0.0, False, 0)


def test_what_is_really_held_follows_a_lease_through_its_life() -> None:
    ledger = Ledger()
    # 80 expected, 96 reserved for the prompt, since it may be longer.
    ledger.reserve("l1", "a", footprint(kv=116)._replace(prompt_high=96), 0.5, LIMITS, now=0.0)

    def seen() -> tuple[int, int]:
        totals = ledger.totals("a", 0.0)
        return totals.held, totals.holdable

    assert seen() == (0, 116), "its prompt may be in or not"
    ledger.first_token("l1", 0.5)
    assert seen() == (80, 80 + 64), "up to 64 tokens of an answer are not counted yet"
    ledger.grow("l1", 15)
    assert seen()[0] == 95
    ledger.extend("l1", 40, LIMITS)
    assert seen()[0] == 95, "what is reserved is not held"
    ledger.correct("l1", 88, -8)
    assert seen()[0] == 103
    ledger.settle("l1", 1.0, linger_until=5.0)
    assert seen() == (0, 148), "an engine may still be at it"
    ledger.expire(5.0)
    assert ledger.totals("a", 5.0).holdable == 0


STEPS = st.lists(
    st.tuples(st.sampled_from(["reserve", "first", "grow", "extend", "correct", "settle", "linger"]), st.integers(0, 7),
              st.integers(0, 60)),
    max_size=80,
)  # fmt: skip


@given(STEPS)
def test_what_is_held_lies_within_what_may_be_and_ends_at_nothing(steps: list[tuple[str, int, int]]) -> None:
    ledger, limits = Ledger(), Limits(kv=None, alone=None, sequences=100, backlog=1e9)
    for kind, number, tokens in steps:
        lease = f"l{number}"
        if kind == "reserve" and lease not in ledger:
            asked = footprint(kv=80 + tokens + 20, prompt=80, output=20)._replace(prompt_high=80 + tokens)
            ledger.reserve(lease, "a", asked, 0.1, limits, now=0.0)
        elif kind == "first":
            ledger.first_token(lease, 0.0)
        elif kind == "grow":
            ledger.grow(lease, tokens)
        elif kind == "extend":
            ledger.extend(lease, tokens, limits)
        elif kind == "correct":
            ledger.correct(lease, 50 + tokens, tokens - 30)
        elif kind in ("settle", "linger"):
            ledger.settle(lease, 0.0, 9.0 if kind == "linger" else None)
        totals = ledger.totals("a", 0.0)
        assert 0 <= totals.held <= totals.holdable
        assert totals.contexts >= totals.resident >= 0
    for number in range(8):
        ledger.settle(f"l{number}", 1.0)
    ledger.expire(9.0)
    assert ledger.totals("a", 500.0)._replace(prefill_pressure=0.0) == Totals()
