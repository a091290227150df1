from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.failure import FailureKind
from gateway.core.health.breaker import BackendBreaker, BreakerState
from gateway.core.health.states import Probed, health_of
from gateway.core.plan import Breaker
from gateway.core.snapshot import Health
from tests.core.fleet import NOW

POLICY = Breaker(failures=3, open=15.0, cap=100.0, trials=2)


def broken(at: float = 0.0, kind: FailureKind = FailureKind.SERVER) -> BackendBreaker:
    breaker = BackendBreaker(POLICY)
    for _ in range(3):
        breaker.failed(kind, at)
    return breaker


def heal(breaker: BackendBreaker, now: float) -> None:
    for _ in range(POLICY.trials):
        breaker.succeeded(now)


def test_failures_in_a_row_open_it() -> None:
    breaker = BackendBreaker(POLICY)
    breaker.failed(FailureKind.SERVER, 0.0)
    breaker.failed(FailureKind.BROKEN, 0.0)
    assert breaker.state(0.0) is BreakerState.CLOSED
    breaker.failed(FailureKind.FIRST_TOKEN, 0.0)
    assert breaker.state(0.0) is BreakerState.OPEN
    assert breaker.retry_at == 15.0


def test_a_success_in_between_starts_the_count_again() -> None:
    breaker = BackendBreaker(POLICY)
    for _ in range(10):
        breaker.failed(FailureKind.SERVER, 0.0)
        breaker.failed(FailureKind.SERVER, 0.0)
        breaker.succeeded(0.0)
    assert breaker.state(0.0) is BreakerState.CLOSED


@pytest.mark.parametrize(
    "kind",
    [FailureKind.CLIENT, FailureKind.CONTEXT, FailureKind.CANCELLED, FailureKind.BUSY, FailureKind.LOADING],
)
def test_callers_mistakes_and_a_busy_engine_never_count(kind: FailureKind) -> None:
    breaker = BackendBreaker(POLICY)
    for _ in range(100):
        breaker.failed(kind, 0.0)
    assert breaker.state(0.0) is BreakerState.CLOSED


def test_wrong_credentials_take_it_out_at_once() -> None:
    breaker = BackendBreaker(POLICY)
    breaker.failed(FailureKind.CREDENTIALS, 0.0, last=True)
    assert breaker.state(0.0) is BreakerState.OPEN


def test_trials_bring_it_back() -> None:
    breaker = broken()
    assert breaker.state(14.9) is BreakerState.OPEN
    assert breaker.state(15.0) is BreakerState.TRIAL
    breaker.succeeded(16.0)
    assert breaker.state(16.0) is BreakerState.TRIAL
    breaker.succeeded(16.0)
    assert breaker.state(16.0) is BreakerState.CLOSED
    assert breaker.retry_at is None


def test_each_failed_trial_doubles_the_rest_up_to_the_cap() -> None:
    breaker, now, rests = broken(), 0.0, []
    for _ in range(6):
        assert breaker.retry_at is not None
        rests.append(breaker.retry_at - now)
        now = breaker.retry_at
        breaker.failed(FailureKind.SERVER, now)
    assert rests == [15.0, 30.0, 60.0, 100.0, 100.0, 100.0]


def test_where_requests_have_no_other_backend_the_rest_does_not_grow() -> None:
    breaker, now, rests = broken(), 0.0, []
    for _ in range(4):
        assert breaker.retry_at is not None
        rests.append(breaker.retry_at - now)
        now = breaker.retry_at
        breaker.failed(FailureKind.SERVER, now, sole=True)
    assert rests == [15.0] * 4
    breaker.failed(FailureKind.CONNECT, 75.0, sole=True)
    assert breaker.retry_at == 175.0, "nothing can work there, whoever asks"


def test_no_cap_is_below_the_first_rest() -> None:
    breaker = BackendBreaker(Breaker(failures=1, open=300.0, cap=120.0))
    breaker.failed(FailureKind.SERVER, 0.0)
    assert breaker.retry_at == 300.0


def unreachable_four_times() -> tuple[BackendBreaker, float]:
    """A breaker whose rest has grown to 100 s, and when that began."""
    breaker, now = broken(kind=FailureKind.CONNECT), 0.0
    for _ in range(3):
        assert breaker.retry_at is not None
        now = breaker.retry_at
        breaker.failed(FailureKind.CONNECT, now)
    assert breaker.retry_at == now + 100.0
    return breaker, now


def test_a_probe_that_gets_through_ends_a_long_rest_for_want_of_a_connection() -> None:
    breaker, began = unreachable_four_times()
    breaker.reached(began + 1.0)
    assert breaker.retry_at == began + 15.0
    breaker.reached(began + 2.0)
    assert breaker.retry_at == began + 15.0


def test_nothing_else_is_ended_by_a_probe() -> None:
    breaker = broken(kind=FailureKind.FIRST_TOKEN)
    breaker.reached(1.0)
    assert breaker.retry_at == 15.0
    asked = BackendBreaker(POLICY)
    asked.rest_until(30.0, 0.0)
    asked.reached(1.0, restarted=True)
    assert asked.retry_at == 30.0


def test_an_engine_that_was_started_again_goes_on_trial_at_once() -> None:
    breaker = broken(kind=FailureKind.BROKEN)
    breaker.reached(1.0, restarted=True)
    assert breaker.state(1.0) is BreakerState.TRIAL
    misconfigured = broken(kind=FailureKind.CREDENTIALS)
    misconfigured.reached(1.0, restarted=True)
    assert misconfigured.state(1.0) is BreakerState.OPEN


def test_flapping_is_remembered_and_forgotten_in_ten_minutes() -> None:
    breaker = broken()
    heal(breaker, 15.0)
    for _ in range(3):
        breaker.failed(FailureKind.SERVER, 20.0)
    assert breaker.retry_at == 50.0
    heal(breaker, 50.0)
    for _ in range(3):
        breaker.failed(FailureKind.SERVER, 50.0 + 1200.0)
    assert breaker.retry_at == 1250.0 + 15.0


def test_failures_of_requests_sent_before_it_opened_change_nothing() -> None:
    breaker = broken()
    for _ in range(20):
        breaker.failed(FailureKind.BROKEN, 1.0)
    assert breaker.retry_at == 15.0


def test_a_late_success_does_not_close_it_early() -> None:
    breaker = broken()
    heal(breaker, 1.0)
    assert breaker.state(1.0) is BreakerState.OPEN


def test_the_later_rest_holds() -> None:
    breaker = BackendBreaker(POLICY)
    breaker.rest_until(1.0, 0.0)
    breaker.rest_until(30.0, 0.0)
    breaker.rest_until(5.0, 0.0)
    assert breaker.state(29.9) is BreakerState.OPEN
    assert breaker.state(30.0) is BreakerState.TRIAL


def test_the_last_backend_is_not_switched_off_by_what_may_pass() -> None:
    breaker = BackendBreaker(POLICY)
    for _ in range(10):
        breaker.failed(FailureKind.SERVER, 0.0, last=True)
    assert breaker.state(0.0) is BreakerState.CLOSED
    for _ in range(10):
        breaker.failed(FailureKind.CONNECT, 0.0, last=True)
    assert breaker.state(0.0) is BreakerState.OPEN


def test_states_combine_with_the_most_telling_first() -> None:
    closed, open_ = BackendBreaker(POLICY), broken()
    assert health_of(Probed.UP, closed, False, 0.0) == (Health.UP, None)
    assert health_of(Probed.UNKNOWN, closed, False, 0.0) == (Health.UNKNOWN, None)
    assert health_of(Probed.LOADING, open_, False, 0.0) == (Health.LOADING, None)
    assert health_of(Probed.DOWN, open_, False, 0.0) == (Health.DOWN, None)
    assert health_of(Probed.UP, closed, True, 0.0) == (Health.DRAINING, None)


def test_a_probe_that_answers_does_not_overrule_the_breaker() -> None:
    breaker = broken()
    assert health_of(Probed.UP, breaker, False, 14.0) == (Health.OPEN, 15.0)
    assert health_of(Probed.UP, breaker, False, 15.0) == (Health.TRIAL, None)


def test_a_rest_that_was_asked_for_is_none_that_failures_brought() -> None:
    asked = BackendBreaker(POLICY)
    asked.rest_until(30.0, 0.0)
    assert health_of(Probed.UP, asked, False, 1.0) == (Health.RESTING, 30.0)
    failing = broken()
    failing.rest_until(30.0, 1.0)
    assert health_of(Probed.UP, failing, False, 1.0) == (Health.OPEN, 30.0)
    failing.rest_until(60.0, 31.0)  # busy on its trial: it works again
    assert health_of(Probed.UP, failing, False, 32.0) == (Health.RESTING, 60.0)


EVENTS = st.lists(st.tuples(st.sampled_from([*FailureKind, None]), st.floats(0.0, 50.0), st.booleans()), max_size=60)


@given(EVENTS)
def test_it_always_comes_back(events: list[tuple[FailureKind | None, float, bool]]) -> None:
    breaker, now = BackendBreaker(POLICY), 0.0
    for kind, step, last in events:
        now += step
        if kind is None:
            breaker.succeeded(now)
        else:
            breaker.failed(kind, now, last=last)
        if breaker.state(now) is BreakerState.OPEN:
            assert breaker.retry_at is not None
            assert now < breaker.retry_at <= now + POLICY.cap
    later = now + POLICY.cap
    assert breaker.state(later) is not BreakerState.OPEN
    heal(breaker, later)
    assert breaker.state(later) is BreakerState.CLOSED


def test_a_question_of_our_own_holds_the_trial_until_it_is_answered() -> None:
    breaker = BackendBreaker(Breaker(failures=1, open=15.0))
    breaker.failed(FailureKind.FIRST_TOKEN, 100.0)
    breaker.asks(120.0)
    assert breaker.state(116.0) is BreakerState.OPEN
    breaker.asked(False, 117.0)
    assert (breaker.retry_at, breaker.state(119.0)) == (120.0, BreakerState.OPEN)
    breaker.asks(140.0)
    breaker.asked(True, 125.0)
    assert breaker.state(125.0) is BreakerState.TRIAL, "no question closes it"
    breaker.succeeded(126.0)
    assert breaker.state(126.0) is BreakerState.CLOSED
    breaker.asks(200.0)
    assert breaker.state(130.0) is BreakerState.CLOSED


def test_a_question_that_could_not_be_asked_leaves_the_rest_as_it_was() -> None:
    breaker = BackendBreaker(Breaker(failures=1, open=15.0))
    breaker.failed(FailureKind.SERVER, 100.0)
    breaker.asks(130.0)
    breaker.asked(None, 101.0)
    assert breaker.retry_at == 115.0
    busy = BackendBreaker(Breaker())
    busy.rest_until(150.0, 100.0)
    busy.asked(True, 101.0)
    assert busy.retry_at == 150.0, "a rest that the engine asked for is its own"


def test_who_is_back_after_failures_gets_more_by_and_by() -> None:
    breaker = BackendBreaker(Breaker())
    assert breaker.ramp(NOW) == 1.0
    breaker.failed(FailureKind.CREDENTIALS, NOW)
    breaker.succeeded(NOW + 20.0)
    assert [round(breaker.ramp(NOW + 20.0 + t), 2) for t in (0.0, 6.0, 30.0, 59.9, 60.0)] == [0.1, 0.1, 0.5, 1.0, 1.0]


@pytest.mark.parametrize("alone", [{"last": True}, {"sole": True}])
def test_but_for_one_that_some_requests_need(alone: dict[str, bool]) -> None:
    breaker = BackendBreaker(Breaker())
    breaker.failed(FailureKind.CREDENTIALS, NOW, **alone)
    breaker.succeeded(NOW + 20.0)
    assert breaker.ramp(NOW + 20.0) == 1.0


def test_a_pause_that_was_asked_for_needs_no_ramp() -> None:
    breaker = BackendBreaker(Breaker())
    breaker.rest_until(NOW + 5.0, NOW)
    breaker.succeeded(NOW + 6.0)
    assert breaker.ramp(NOW + 6.0) == 1.0
