from __future__ import annotations

import pytest

from gateway.core.decide import decide
from gateway.core.failure import FailureKind
from gateway.core.lease import Ended, Lease
from gateway.core.prefix.chain import fingerprint
from gateway.core.quota import Quota
from gateway.core.service import Service
from gateway.core.usage import expected_usage, usage
from tests.core.fleet import NOW, plan, request, snapshot, view

SERVICE = Service(prefill=2.0, token=0.01, second=0.1, uncached=8000, output=200, ttft=2.0, seconds=6.0)


@pytest.fixture
def lease() -> Lease:
    asked, seen = request(prompt=8000, output=200), view("a")
    decision = decide(plan(), asked, snapshot(seen), NOW, 0.5)
    chain = fingerprint([b"x"])
    return Lease("l", asked, chain, decision, "a", seen.offers[0], seen.block, NOW, SERVICE)


def reserved(lease: Lease) -> int:
    assert lease.decision.footprint is not None
    return lease.decision.footprint.kv


def test_a_grant_is_charged_what_it_is_expected_to_use(lease: Lease) -> None:
    assert expected_usage(lease) == {
        Quota.REQUESTS: 1,
        Quota.TOKENS: 8200,
        Quota.KV_SECONDS: reserved(lease) * 6.0,
    }


def test_an_answer_costs_what_its_engine_counted_cached_or_not(lease: Lease) -> None:
    done = Ended(completed=True, prompt_tokens=7900, cached_tokens=7000, output_tokens=40, ttft=0.5)
    assert usage(lease, done, 2.0) == {
        Quota.REQUESTS: 1,
        Quota.TOKENS: 7940,
        Quota.KV_SECONDS: reserved(lease) * 2.0,
    }


def test_an_answer_of_an_engine_that_counts_nothing_costs_what_was_estimated_and_streamed(lease: Lease) -> None:
    lease.generated = 30
    assert usage(lease, Ended(completed=True, ttft=0.5), 2.0)[Quota.TOKENS] == 8030


@pytest.mark.parametrize("kind", list(FailureKind))
def test_x6_a_failure_before_the_first_byte_costs_nothing(lease: Lease, kind: FailureKind) -> None:
    assert usage(lease, Ended(failure=kind, ttft=None), 30.0) == {}


def test_a_stream_that_broke_costs_what_came(lease: Lease) -> None:
    lease.generated = 30
    broken = Ended(failure=FailureKind.BROKEN, shown=True, ttft=1.0, output_tokens=32)
    assert usage(lease, broken, 3.0)[Quota.TOKENS] == 8032


def test_x6_a_client_that_leaves_in_prefill_pays_for_what_was_read(lease: Lease) -> None:
    assert usage(lease, Ended(), 0.0)[Quota.TOKENS] == 0
    assert usage(lease, Ended(), 0.5)[Quota.TOKENS] == pytest.approx(2000)
    assert usage(lease, Ended(), 9.0)[Quota.TOKENS] == 8000


def test_a_client_that_leaves_in_the_stream_pays_for_what_came(lease: Lease) -> None:
    lease.generated = 12
    assert usage(lease, Ended(ttft=1.0, shown=True), 2.0)[Quota.TOKENS] == 8012


def test_an_answer_that_outgrew_its_reservation_holds_more(lease: Lease) -> None:
    lease.extended = 512
    held = usage(lease, Ended(completed=True, output_tokens=900, ttft=1.0), 10.0)[Quota.KV_SECONDS]
    assert held == (reserved(lease) + 256) * 10.0
