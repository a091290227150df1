from __future__ import annotations

import pytest

from gateway.core.failure import FailureKind
from gateway.core.plan import RetryPolicy
from gateway.core.retrying import No, Retry, RetryBudget, may_retry
from tests.core.fleet import NOW, request

POLICY = RetryPolicy(attempts=2, budget=0.1, burst=3.0, size_limit=32_768)


def rule(
    kind: FailureKind, *, attempt: int = 0, prompt: int = 1000, budget: RetryBudget | None = None, **more: bool
) -> Retry | No:
    return may_retry(
        kind,
        request(attempt=attempt),
        prompt_tokens=prompt,
        policy=POLICY,
        budget=budget or RetryBudget(POLICY),
        now=NOW,
        **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "attempt", "allowed"),
    [
        (FailureKind.CONNECT, 0, True),
        (FailureKind.CONNECT, 1, True),
        (FailureKind.CONNECT, 2, False),
        (FailureKind.BUSY, 0, True),
        (FailureKind.CREDENTIALS, 0, True),
        (FailureKind.SERVER, 0, True),
        (FailureKind.SERVER, 1, True),
        (FailureKind.SERVER, 2, False),
        (FailureKind.MEMORY, 0, True),
        (FailureKind.FIRST_TOKEN, 0, True),
        (FailureKind.FIRST_TOKEN, 1, False),
        (FailureKind.BROKEN, 0, True),
        (FailureKind.BROKEN, 1, False),
        (FailureKind.CONTEXT, 0, True),
        (FailureKind.CONTEXT, 1, False),
        (FailureKind.CLIENT, 0, False),
        (FailureKind.CANCELLED, 0, False),
        (FailureKind.LOADING, 5, True),
    ],
)
def test_which_failures_are_retried(kind: FailureKind, attempt: int, allowed: bool) -> None:
    assert bool(rule(kind, attempt=attempt)) is allowed


def test_what_fits_with_a_smaller_budget_is_asked_for_in_the_same_place() -> None:
    assert rule(FailureKind.CONTEXT, fits=True) == Retry(exclude=False)
    assert rule(FailureKind.CONTEXT) == Retry(exclude=True)


@pytest.mark.parametrize("kind", list(FailureKind))
def test_nothing_is_replayed_after_the_first_byte(kind: FailureKind) -> None:
    assert rule(kind, first_byte_sent=True) == No("the client has part of the answer")


def test_a_long_prompt_is_not_read_twice_unless_its_engine_died() -> None:
    assert not rule(FailureKind.FIRST_TOKEN, prompt=100_000)
    assert rule(FailureKind.FIRST_TOKEN, prompt=100_000, backend_dead=True)
    assert rule(FailureKind.CONNECT, prompt=100_000)


def test_a_loading_engine_has_not_failed_the_request() -> None:
    assert rule(FailureKind.LOADING) == Retry(exclude=False)


def test_one_deadline_over_queue_and_attempts() -> None:
    late = may_retry(
        FailureKind.CONNECT,
        request(waited=60.0),
        prompt_tokens=10,
        policy=POLICY,
        budget=RetryBudget(POLICY),
        now=NOW,
    )
    assert late == No("its time is up")


def test_the_budget_bounds_the_whole_process() -> None:
    budget = RetryBudget(POLICY)
    answers = [rule(FailureKind.SERVER, budget=budget) for _ in range(5)]
    assert [bool(answer) for answer in answers] == [True, True, True, False, False]


def test_refused_connections_cost_no_budget() -> None:
    budget = RetryBudget(POLICY)
    assert all(rule(FailureKind.CONNECT, budget=budget) for _ in range(50))
    assert budget.take(NOW)


def test_those_that_ran_when_their_engine_died_cost_no_budget() -> None:
    budget = RetryBudget(POLICY)
    assert all(rule(FailureKind.BROKEN, budget=budget, excused=True) for _ in range(40))
    assert not rule(FailureKind.BROKEN, budget=budget, excused=True, attempt=1), "it may be what breaks them"
    assert budget.take(NOW)


def test_traffic_refills_the_budget_up_to_its_burst() -> None:
    budget = RetryBudget(POLICY)
    for _ in range(3):
        assert budget.take(NOW)
    assert not budget.take(NOW)
    for _ in range(11):
        budget.admitted(NOW)
    assert budget.take(NOW)
    assert not budget.take(NOW)
    for _ in range(1000):
        budget.admitted(NOW)
    assert [budget.take(NOW) for _ in range(4)] == [True, True, True, False]


def test_a_quiet_gateway_earns_a_retry_every_ten_seconds() -> None:
    budget = RetryBudget(POLICY)
    for _ in range(3):
        budget.take(NOW)
    assert not budget.take(NOW + 9.0)
    assert budget.take(NOW + 10.1)


def test_no_budget_means_none() -> None:
    budget = RetryBudget(RetryPolicy(budget=0.0, burst=0.0))
    budget.admitted(NOW)
    assert not budget.take(NOW + 1000.0)
