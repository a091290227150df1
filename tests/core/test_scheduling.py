from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.reasons import Reason
from gateway.core.scheduling import next_try, retry_after, too_late, wait_for_room
from gateway.core.snapshot import Health
from tests.core.fleet import NOW, view


@pytest.mark.parametrize(
    ("ahead", "rate", "roll", "seconds"),
    [(10.0, 2.0, 0.0, 5), (10.0, 2.0, 0.99, 8), (0.0, 2.0, 0.5, 1), (1e9, 1.0, 0.0, 59), (10.0, 0.0, 0.0, 59)],
)
def test_retry_after_is_work_over_rate_with_a_spread(ahead: float, rate: float, roll: float, seconds: int) -> None:
    assert retry_after(ahead, rate, roll) == seconds


@given(st.floats(0, 1e12), st.floats(0, 1e9), st.floats(0, 1, exclude_max=True))
def test_retry_after_is_between_one_second_and_a_minute(ahead: float, rate: float, roll: float) -> None:
    assert 1 <= retry_after(ahead, rate, roll) <= 59


@pytest.mark.parametrize("reason", [Reason.SLOTS_FULL, Reason.TPOT_LIMIT, Reason.LEARNED_LIMIT])
def test_a_slot_frees_up_after_the_first_of_those_running(reason: Reason) -> None:
    busy = view(running=8, reserved=8000)
    assert wait_for_room(busy, reason, limit=8, needed=9, service=16.0) == pytest.approx(2.0)


def test_tokens_free_up_in_even_shares() -> None:
    busy = view(running=4, reserved=40_000)
    assert wait_for_room(busy, Reason.KV_FULL, limit=5000, needed=25_000, service=10.0) == pytest.approx(5.0)


def test_no_wait_is_longer_than_all_that_runs() -> None:
    busy = view(running=2, reserved=2000)
    assert wait_for_room(busy, Reason.KV_FULL, limit=0, needed=90_000, service=10.0) == pytest.approx(10.0)


def test_prefill_is_worked_off_second_by_second() -> None:
    assert wait_for_room(view(running=1), Reason.PREFILL_BACKLOG, limit=2.0, needed=3.5, service=99.0) == 1.5


def test_prefills_are_forgotten_in_time_and_those_who_decode_end() -> None:
    held = view(running=3, prefill_pressure=12.0)
    # 12 s within 20 s, of which 2 s more may be 10: 12 must have become 8.
    wait = wait_for_room(held, Reason.DECODE_PACE, limit=10.0, needed=14.0, service=99.0)
    assert 12.0 * math.exp(-wait / 20.0) == pytest.approx(8.0)
    assert wait_for_room(held, Reason.DECODE_PACE, limit=10.0, needed=14.0, service=5.0) == 5.0
    assert wait_for_room(held, Reason.DECODE_PACE, limit=1.0, needed=14.0, service=30.0) == 30.0


def test_room_that_others_hold_is_guessed() -> None:
    assert wait_for_room(view(foreign=90_000), Reason.KV_FULL, limit=0, needed=1, service=1.0) == 30.0


def test_trying_again_waits_for_the_next_trial_when_all_rest() -> None:
    rests = [view(health=Health.OPEN, retry_at=NOW + left) for left in (40.0, 12.0)]
    assert next_try(rests, NOW, 0.0) == 12
    assert next_try([*rests, view()], NOW, 0.0) == 5
    assert next_try([], NOW, 0.0) == 5
    assert next_try([view(health=Health.OPEN, retry_at=NOW + 900.0)], NOW, 0.999) <= 59


def test_a_chance_below_two_percent_is_too_late() -> None:
    assert not too_late(wait=100.0, left=-100.0 * math.log(0.97))
    assert too_late(wait=100.0, left=-100.0 * math.log(0.99))
