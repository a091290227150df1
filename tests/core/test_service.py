"""Device seconds: what turns are shared out in."""

from __future__ import annotations

import pytest

from gateway.core.decide import decide
from gateway.core.decision import Verdict
from gateway.core.lease import Ended
from gateway.core.service import Service, service_of
from tests.core.fleet import NOW, hit, plan, request, snapshot, view


def service(prompt: int = 8000, *, share: float = 0.0, running: int = 0) -> Service:
    seen = view("a", running=running, decoding=running, resident=1000 * running)
    hits = {"a": hit(share)} if share else {}
    decision = decide(plan(), request(prompt=prompt, hits=hits), snapshot(seen), NOW, 0.5)
    assert decision.verdict is Verdict.ADMIT
    return service_of(decision, seen, seen.offers[0])


def test_a_cached_prompt_costs_little_and_a_long_one_much() -> None:
    assert service(16_000).predicted > 1.9 * service(8000).predicted - service(8000).token * 200
    assert service(16_000, share=0.99).prefill < 0.05 * service(16_000).prefill


def test_who_comes_first_does_not_pay_for_the_empty_machine() -> None:
    alone, crowded = service(), service(running=6)
    assert alone.prefill == crowded.prefill
    assert alone.token == crowded.token


def test_what_it_took_is_counted_by_its_engines_tokens() -> None:
    expected = Service(prefill=2.0, token=0.01, second=0.1, uncached=8000, output=200, ttft=2.0, seconds=6.0)
    assert expected.predicted == pytest.approx(2.0 + 2.0 + 0.6)
    longer = Ended(completed=True, prompt_tokens=8000, cached_tokens=0, output_tokens=400, ttft=2.0)
    assert expected.actual(longer, 10.0) == pytest.approx(2.0 + 4.0 + 1.0)
    warm = Ended(completed=True, prompt_tokens=8000, cached_tokens=6000, output_tokens=200, ttft=0.5)
    assert expected.actual(warm, 4.5) == pytest.approx(0.5 + 2.0 + 0.45)


def test_a_prompt_that_was_given_up_while_it_was_read_counts_as_far_as_it_was_read() -> None:
    expected = Service(prefill=2.0, token=0.01, second=0.1, uncached=8000, output=200, ttft=2.0, seconds=6.0)
    assert expected.actual(Ended(), 0.5) == pytest.approx(0.5 + 0.05)
    assert expected.actual(Ended(), 5.0) == pytest.approx(2.0 + 0.5)
