from __future__ import annotations

import pytest

from gateway.core.decide import decide
from gateway.core.reasons import Reason
from tests.cases.case import Case, load
from tests.core.fleet import NOW

CASES = list(load())

GIVEN_ELSEWHERE = {
    "model_not_allowed", "wrong_key", "over_quota", "queue_full", "queue_timeout", "shutting_down", "client_closed",
}  # fmt: skip
"""Reasons that need no look at the fleet: keys, quotas, the queue and the shell give them."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_decision(case: Case) -> None:
    decision = decide(case.plan, case.request, case.snapshot, NOW, case.roll)
    expect = case.expect
    trace = {f"{c.backend}/{c.model}" if c.tier else c.backend: c for c in decision.trace.candidates}

    assert (decision.verdict, decision.reason) == (expect["verdict"], expect["reason"]), trace
    assert decision.backend == expect.get("backend")
    for key in ("model", "tier", "limit", "retry_after"):
        if key in expect:
            assert getattr(decision, key) == expect[key], key
    for key in ("max_tokens", "kv"):
        if key in expect:
            assert decision.footprint is not None
            assert getattr(decision.footprint, key) == expect[key], key
    for name, reason in expect.get("out", {}).items():
        assert trace[name].reason == reason, name
    for name, (limit, needed) in expect.get("needed", {}).items():
        assert (trace[name].limit, trace[name].needed) == (limit, needed), name


def test_names_tell_cases_apart() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


def test_every_reason_of_a_decision_has_a_case() -> None:
    shown = {case.expect["reason"] for case in CASES} | {
        reason for case in CASES for reason in case.expect.get("out", {}).values()
    }
    assert {str(reason) for reason in Reason} - GIVEN_ELSEWHERE == shown
