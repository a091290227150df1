from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.core.continuing import MOST_RESUMES, can_break_off, may_resume, others, rest_of, same_class
from gateway.core.estimators.answer_shape import AnswerShape
from gateway.core.failure import FailureKind
from gateway.core.plan import RetryPolicy, Route
from gateway.core.request import Consent, Estimate
from gateway.core.retrying import RetryBudget
from tests.core.fleet import NOW, offer, request, snapshot, view

ROUTE = Route("m", "m", resumes=True)
STREAM = request(stream=True)


def budget(burst: float = 5.0) -> RetryBudget:
    return RetryBudget(RetryPolicy(budget=0.0, burst=burst))


@pytest.mark.parametrize(
    ("asked", "route", "may"),
    [
        (STREAM, ROUTE, True),
        (STREAM, Route("m", "m"), False),
        (request(), ROUTE, False),
        (replace(STREAM, n=2), ROUTE, False),
        (replace(STREAM, needs=frozenset(("logprobs",))), ROUTE, False),
        (replace(STREAM, needs=frozenset(("tools",))), ROUTE, True),
        (replace(STREAM, shape=AnswerShape(False, "", True)), ROUTE, False),
    ],
)
def test_which_answers_can_go_on(asked: object, route: Route, may: bool) -> None:
    assert can_break_off(route, asked) is may  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "may"),
    [
        (FailureKind.BROKEN, True),
        (FailureKind.TOKEN_GAP, True),
        (FailureKind.MEMORY, True),
        (FailureKind.CONNECT, True),
        (FailureKind.CLIENT, False),
        (FailureKind.CONTEXT, False),
        (FailureKind.CANCELLED, False),
    ],
)
def test_only_an_engines_fault_is_mended(kind: FailureKind, may: bool) -> None:
    assert bool(may_resume(kind, STREAM, budget(), NOW, excused=False)) is may


def test_it_goes_on_twice_and_within_the_budget() -> None:
    spent = replace(STREAM, resumed=MOST_RESUMES)
    assert not may_resume(FailureKind.BROKEN, spent, budget(), NOW, excused=True)
    purse = budget(1.0)
    assert may_resume(FailureKind.BROKEN, STREAM, purse, NOW, excused=True)
    assert may_resume(FailureKind.BROKEN, STREAM, purse, NOW, excused=False)
    assert not may_resume(FailureKind.BROKEN, STREAM, purse, NOW, excused=False)


def test_only_backends_of_the_same_weights_whose_engines_can_are_open() -> None:
    mine = offer(weight_bits=4.84)
    fleet = snapshot(
        view("same", offers=(offer(weight_bits=5.1),)),
        view("other format", offers=(offer(weight_bits=16.0),)),
        view("other model", offers=(offer("n", weight_bits=4.84),)),
        view("cannot", offers=(offer(weight_bits=4.84),)),
    )
    able = ("same", "other format", "other model")
    assert others(fleet, mine, able) == {"other format", "other model", "cannot"}
    assert same_class(mine, offer(weight_bits=5.4))
    assert not same_class(mine, offer(weight_bits=5.6))


def test_the_rest_has_a_longer_prompt_a_smaller_budget_and_no_other_model() -> None:
    asked = replace(STREAM, max_tokens=100, consent=Consent.ANY, tried=frozenset(("a",)))
    asked = replace(asked, estimates={**asked.estimates, "n": Estimate(1, 1, 1, 1)})
    rest = rest_of(asked, "m", 30, frozenset(("b",)), NOW)
    assert rest is not None
    assert rest.estimates["m"].prompt == asked.estimates["m"].prompt + 30
    assert rest.estimates["m"].prompt_high == asked.estimates["m"].prompt_high + 30
    assert set(rest.estimates) == {"m"}
    assert (rest.max_tokens, rest.consent, rest.tried) == (70, Consent.NONE, {"a", "b"})
    assert (rest.attempt, rest.resumed, rest.given) == (1, 1, 30)
    assert rest.deadline > NOW
    again = rest_of(rest, "m", 5, frozenset(), NOW)
    assert again is not None
    assert (again.max_tokens, again.given, again.resumed) == (65, 35, 2)


def test_nothing_is_asked_for_where_nothing_is_left() -> None:
    assert rest_of(replace(STREAM, max_tokens=30), "m", 30, frozenset(), NOW) is None
    assert rest_of(STREAM, "unknown", 3, frozenset(), NOW) is None
