"""What the fleet notices of a member that works worse: silence behind a green health page, slowness, memory."""

from __future__ import annotations

from dataclasses import replace

from gateway.core.bounds import LimitedBy
from gateway.core.degrading.causes import Cause
from gateway.core.degrading.phase import Phase
from gateway.core.failure import FailureKind
from gateway.core.headroom import LOWEST
from gateway.core.snapshot import Health
from gateway.engines.adapter import Facts, FoundModel, Load
from tests.core.fleet import NOW, plan
from tests.fleet.test_roster import IDLE, OURS, fleet, seen


def test_an_engine_that_holds_requests_in_silence_gets_nothing_new_until_it_says_something() -> None:
    roster = fleet(slots=8)
    roster.held("a", OURS, NOW)
    roster["a"].awaited_until = NOW + 4.0  # when its first token was predicted
    assert seen(roster, OURS, NOW + 18.0).health is Health.UP
    assert seen(roster, OURS, NOW + 20.0).health is Health.TRIAL
    roster.sampled("a", Load(running=1), OURS, NOW + 20.0)
    assert roster.judge("a", OURS, NOW + 20.0).cause is Cause.HUNG, "its metrics are in good order"
    roster.progressed("a", NOW + 21.0)
    assert seen(roster, OURS, NOW + 22.0).health is Health.UP
    assert roster.judge("a", OURS, NOW + 22.0).cause is Cause.NONE


def test_an_idle_engine_is_not_silent_nor_one_that_was_idle_until_now() -> None:
    roster = fleet(slots=8)
    roster.held("a", OURS, NOW)
    roster.held("a", IDLE, NOW + 1.0)
    assert seen(roster, IDLE, NOW + 500.0).health is Health.UP
    roster.held("a", OURS, NOW + 500.0)
    assert seen(roster, OURS, NOW + 510.0).health is Health.UP


def test_a_slow_phase_is_named_with_the_time_since_when() -> None:
    roster, now = fleet(), NOW
    for number in range(90):
        now += 1.0
        ratio = 1.0 if number < 60 else 2.5
        roster.paced("a", [(Phase.PREFILL, 1.0), (Phase.DECODE, ratio * (1.0 + 0.1 * (number % 3)))], 1, now)
    verdict = roster.judge("a", IDLE, now)
    assert verdict.cause is Cause.BANDWIDTH
    assert verdict.evidence[1].startswith("tokens take 2.")
    since = roster["a"].condition.since
    assert since is not None
    assert NOW + 59.0 <= since <= NOW + 66.0


def test_an_engine_that_died_of_memory_comes_back_with_half_of_its_pool_believed() -> None:
    roster = fleet(engine="vllm", slots=8)
    before = roster["a"].observer.headroom.share
    roster.failed("a", FailureKind.MEMORY, NOW)
    assert roster.judge("a", IDLE, NOW).cause is Cause.MEMORY
    roster.unreachable("a", "connection refused", True, NOW + 5.0)
    found = Facts(models=(FoundModel("m", window=4096),), slots=8, pool_tokens=8192, block=1)
    assert roster.discovered("a", found, NOW + 40.0)
    assert 0.5 * LOWEST <= roster["a"].observer.headroom.share <= 0.5 * before
    roster.unreachable("a", "connection refused", True, NOW + 500.0)
    roster.discovered("a", found, NOW + 540.0)
    assert roster["a"].observer.headroom.share == before, "of something else"


def test_preemptions_that_an_engine_counts_name_memory() -> None:
    roster = fleet(engine="vllm", slots=8)
    for second, count in ((0.0, 10.0), (5.0, 10.0), (10.0, 20.0)):
        roster.sampled("a", Load(preemptions=count), IDLE, NOW + second)
    assert roster.judge("a", IDLE, NOW + 10.0).cause is Cause.MEMORY
    assert seen(roster).strained
    assert roster.judge("a", IDLE, NOW + 80.0).cause is Cause.NONE
    assert not seen(roster).strained


def test_a_backend_that_is_back_has_its_slots_by_and_by() -> None:
    roster = fleet(slots=8)
    member = roster["a"]
    member.breaker.failed(FailureKind.CREDENTIALS, NOW)
    member.breaker.succeeded(NOW + 30.0)
    seats = [
        (seen(roster, IDLE, NOW + 30.0 + t).slots, seen(roster, IDLE, NOW + 30.0 + t).limited_by) for t in (0, 30, 60)
    ]
    assert seats == [(1, LimitedBy.RAMP), (4, LimitedBy.RAMP), (8, LimitedBy.SLOTS)]


def test_what_was_wrong_with_a_backend_is_forgotten_with_it() -> None:
    roster = fleet()
    roster.unreachable("a", "connection refused", True, NOW)
    roster.judge("a", IDLE, NOW)
    assert roster.wrong == {"a": Cause.DEAD}
    roster.apply(replace(plan(), backends=()), {})
    assert roster.drained(lambda _: IDLE)
    assert roster.wrong == {}
