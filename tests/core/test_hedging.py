from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.core.boundary import Label
from gateway.core.decide import decide
from gateway.core.decision import Decision
from gateway.core.hedging import LATE, LEAST, HedgeBudget, busy_share, late_after, may_hedge
from gateway.core.snapshot import BackendView, Health
from tests.core.fleet import NOW, hit, plan, request, snapshot, view

ASKED = request(stream=True, klass="interactive", prompt=1000)


def second(*views: BackendView, prompt: int = 1000, **more: object) -> Decision:
    asked = request(stream=True, klass="interactive", prompt=prompt, tried=frozenset({"a"}), **more)  # type: ignore[arg-type]
    return decide(plan(), asked, snapshot(*views), NOW, 0.5)


def test_it_is_late_after_a_multiple_of_what_was_predicted_and_never_at_once() -> None:
    first = decide(plan(), ASKED, snapshot(view()), NOW, 0.5)
    assert late_after(ASKED, replace(first, predicted_ttft=0.1), 0.02) == LEAST
    assert late_after(ASKED, replace(first, predicted_ttft=2.0), 0.02) == 2.0 * LATE


@pytest.mark.parametrize(
    "asked",
    [
        replace(ASKED, stream=False),
        replace(ASKED, n=2),
        replace(ASKED, attempt=1),
        replace(ASKED, klass="batch"),
    ],
    ids=["whole", "choices", "a retry", "another class"],
)
def test_what_is_never_hedged(asked: object) -> None:
    first = decide(plan(), ASKED, snapshot(view()), NOW, 0.5)
    assert late_after(asked, first, 0.02) is None  # type: ignore[arg-type]
    assert late_after(ASKED, first, 0.0) is None


def test_only_where_it_costs_little() -> None:
    free = (view("a"), view("b"))
    assert may_hedge(second(*free), snapshot(*free), 0)
    assert not may_hedge(second(*free), snapshot(*free), 1), "somebody waits for a place"
    busy = (view("a", running=7), view("b", running=6))
    assert busy_share(snapshot(*busy), "m") > 0.7
    assert not may_hedge(second(*busy), snapshot(*busy), 0)
    assert not may_hedge(second(*free, prompt=4000), snapshot(*free), 0)
    assert may_hedge(second(*free, prompt=4000, hits={"b": hit(0.9)}), snapshot(*free), 0)
    alone = (view("a"), view("b", health=Health.DOWN))
    assert not may_hedge(second(*alone), snapshot(*alone), 0)
    public = (view("a"), view("b", clearance=Label.PUBLIC))
    assert not may_hedge(second(*public, label=Label.INTERNAL), snapshot(*public), 0), "never across a label"
    assert busy_share(snapshot(), "m") == 1.0


def test_hedges_are_a_share_of_requests_and_few_are_saved_up() -> None:
    budget = HedgeBudget(0.02)
    taken = 0
    for _ in range(1000):
        budget.admitted()
        taken += budget.take()
    assert 18 <= taken <= 20
    for _ in range(10_000):
        budget.admitted()
    assert sum(budget.take() for _ in range(100)) == 3
    assert not HedgeBudget(0.0).take()
