"""What follows from an engine's reports and our own leases together, on a member of the fleet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.config.catalog import known_model
from gateway.config.endpoint import Endpoint
from gateway.core.backend import Backend, Device
from gateway.core.bounds import LimitedBy
from gateway.core.degrading.phase import Phase
from gateway.core.failure import FailureKind
from gateway.core.ledger import Totals
from gateway.core.plan import Plan, Route
from gateway.core.snapshot import BackendView
from gateway.engines.adapter import Facts, FoundModel, Load
from gateway.fleet.roster import Roster
from tests.core.fleet import DEVICE, NOW, plan

known_model("m")

IDLE = Totals()
POOL = 100_000
BIG = Device("big", memory=96 << 30, bandwidth=1.8e12, flops=2.5e14)


def fleet(
    engine: str = "vllm", *, policy: Plan | None = None, facts: Facts | None = None, headroom: float = 0.92
) -> Roster:
    """One backend `a` that was discovered."""
    roster = Roster()
    backend = Backend("a", engine, BIG, shares_prefix=engine == "vllm", headroom=headroom)
    roster.apply(replace(policy or plan(), backends=(backend,)), {"a": Endpoint("a", "http://127.0.0.1:9", engine)})
    roster.discovered("a", facts or Facts(models=(FoundModel("m", window=32_768),), pool_tokens=POOL, block=16))
    return roster


def seen(roster: Roster, now: float = NOW, totals: Totals = IDLE, factor: float = 1.0) -> BackendView:
    (view,) = roster.snapshot(now, lambda _: totals, lambda _: (1.0, factor)).views
    return view


def test_preemptions_lower_the_headroom_and_quiet_minutes_raise_it() -> None:
    roster = fleet()
    roster.sampled("a", Load(running=4, kv_usage=0.9, preemptions=7.0), IDLE, NOW)
    assert seen(roster).headroom == 0.92, "those before this gateway came say nothing about it"
    roster.sampled("a", Load(running=4, kv_usage=0.9, preemptions=9.0), IDLE, NOW + 5)
    assert seen(roster).headroom == pytest.approx(0.874)
    assert roster["a"].observer.preemptions == 2
    for k in range(2, 15):
        roster.sampled("a", Load(running=4, kv_usage=0.9, preemptions=9.0), IDLE, NOW + 5 * k)
    assert seen(roster, NOW + 75).headroom == pytest.approx(0.884)


def test_room_shrinks_with_the_headroom() -> None:
    roster = fleet()
    before = seen(roster).free
    roster.failed("a", FailureKind.MEMORY, NOW)
    assert seen(roster).free == int(POOL * 0.92 * 0.95) < before


def test_a_restart_forgets_preemptions_and_others() -> None:
    roster = fleet()
    roster.failed("a", FailureKind.MEMORY, NOW)
    for k in range(10):
        roster.sampled("a", Load(running=2, kv_usage=0.5, preemptions=3.0), IDLE, NOW + k)
    assert seen(roster, NOW + 9).foreign > 0
    roster.restarted("a")
    roster.discovered("a", Facts(models=(FoundModel("m", window=32_768),), pool_tokens=POOL, block=16))
    view = seen(roster, NOW + 10)
    assert (view.headroom, view.foreign) == (0.92, 0)
    roster.sampled("a", Load(running=0, kv_usage=0.0, preemptions=5.0), IDLE, NOW + 11)
    assert seen(roster, NOW + 11).headroom == 0.92


def test_what_waits_inside_beyond_ours_is_others_or_an_unknown_limit() -> None:
    roster = fleet()
    ours = Totals(running=3, decoding=1)
    roster.held("a", ours, NOW - 5)
    observer = roster["a"].observer
    roster.sampled("a", Load(running=1, waiting=2), ours, NOW)
    assert observer.waits_inside(NOW) == 0, "two of ours have no token yet"
    roster.sampled("a", Load(running=1, waiting=5), ours, NOW + 5)
    assert observer.waits_inside(NOW + 5) == 3
    assert observer.waits_inside(NOW + 15) == 0, "a sample of ten seconds ago"


def test_what_was_preempted_waits_without_being_others() -> None:
    roster = fleet()
    ours = Totals(running=3, decoding=3)
    roster.held("a", ours, NOW - 5)
    for k, preemptions in enumerate((0.0, 2.0, 2.0)):
        roster.sampled("a", Load(running=1, waiting=2 if k else 0, preemptions=preemptions), ours, NOW + 5 * k)
    assert roster["a"].observer.waits_inside(NOW + 10) == 0


def test_an_answers_head_is_a_sample_of_its_own_moment() -> None:
    roster = fleet()
    ours = Totals(running=1, decoding=1, reserved=50_000, held=40_000, holdable=40_064)
    roster.held("a", ours, NOW - 20)
    roster.held("a", ours, NOW)
    roster.held("a", IDLE, NOW + 0.01)
    roster.reported("a", Load(waiting=0, kv_usage=0.4), NOW, NOW + 0.01)
    assert seen(roster, NOW + 1).foreign == 0, "it was ours until then"
    for k in range(1, 30):
        roster.reported("a", Load(waiting=1, kv_usage=0.4), NOW + k, NOW + k)
    view = seen(roster, NOW + 30)
    assert view.foreign == pytest.approx(40_000, rel=0.01)
    assert roster["a"].told(NOW + 30) is None, "it is no scrape: how many run is not known from it"
    roster.reported("a", Load(kv_usage=0.0), NOW + 30, NOW + 50)
    assert seen(roster, NOW + 30).foreign == view.foreign, "one that took so long to pass on says nothing"


def test_silent_metrics_neither_attract_nor_repel() -> None:
    roster = fleet()
    for k in range(30):
        roster.sampled("a", Load(running=6, kv_usage=0.5), IDLE, NOW + k)
    last = NOW + 29
    assert (seen(roster, last).foreign, seen(roster, last).slots) == (pytest.approx(50_000, rel=0.01), 250)
    assert roster.tells_load("a", last)
    late = seen(roster, last + 70)
    assert late.foreign == pytest.approx(25_000, rel=0.01)
    assert late.slots == 256
    assert not roster.tells_load("a", last + 70)


def with_goal(tpot: float | None) -> Plan:
    return plan(Route("m", "m", tpot=tpot))


def test_an_objective_bounds_the_batch_and_is_told_to_do_so() -> None:
    facts = Facts(models=(FoundModel("m", window=32_768, params=30_000_000_000),), slots=64, pool_tokens=POOL, block=16)
    busy = Totals(running=4, decoding=4, contexts=4 * 8000, resident=4 * 8000)
    free = seen(fleet(facts=facts), totals=busy)
    assert (free.slots, free.limited_by) == (64, LimitedBy.SLOTS)
    roster = fleet(policy=with_goal(0.055), facts=facts)
    bound = seen(roster, totals=busy)
    assert bound.limited_by is LimitedBy.TPOT
    assert 1 < bound.slots < 64
    slower = seen(roster, totals=busy, factor=2.0)
    assert 1 <= slower.slots < bound.slots
    assert seen(roster, totals=busy, factor=1e9).slots == 1, "one may always run"


def test_others_take_part_of_the_batch() -> None:
    facts = Facts(models=(FoundModel("m", window=32_768, params=30_000_000_000),), slots=64, pool_tokens=POOL, block=16)
    roster = fleet(policy=with_goal(0.055), facts=facts)
    alone = seen(roster).slots
    roster.sampled("a", Load(running=2), IDLE, NOW)
    assert seen(roster).slots == alone - 2
    roster.sampled("a", Load(running=63), IDLE, NOW)
    assert seen(roster).slots == 1
    roster.sampled("a", Load(running=64), IDLE, NOW)
    assert seen(roster).slots == 0, "no slot at all is left"


def test_a_reload_brings_an_objective() -> None:
    facts = Facts(models=(FoundModel("m", window=32_768, params=30_000_000_000),), slots=64, pool_tokens=POOL, block=16)
    roster = fleet(facts=facts)
    assert seen(roster).limited_by is LimitedBy.SLOTS
    member = roster["a"]
    roster.apply(replace(with_goal(0.055), backends=(member.backend,)), {"a": member.endpoint})
    assert seen(roster).limited_by is LimitedBy.TPOT


def test_an_engine_that_tells_nothing_is_found_out_about() -> None:
    roster = fleet("openai", facts=Facts(models=(FoundModel("m", window=32_768),)))
    assert seen(roster).limited_by is LimitedBy.SLOTS, "not asked yet"
    roster.sampled("a", Load(), IDLE, NOW)
    assert (seen(roster).slots, seen(roster).limited_by) == (4, LimitedBy.LEARNED)
    for _ in range(60):
        roster.paced("a", [(Phase.DECODE, 1.0)], seen(roster).slots, NOW)
    assert seen(roster).slots > 16
    roster.paced("a", [], 4, NOW)
    for _ in range(40):
        roster.paced("a", [(Phase.DECODE, 8.0)], seen(roster).slots, NOW)
    assert seen(roster).slots < 16


@pytest.mark.parametrize(
    ("engine", "facts", "load"),
    [
        ("vllm", Facts(models=(FoundModel("m", window=4096),), pool_tokens=POOL), Load(running=0, kv_usage=0.0)),
        ("openai", Facts(models=(FoundModel("m", window=4096),), slots=6), Load()),
        ("ollama", Facts(models=(FoundModel("m", window=4096),)), Load()),
    ],
    ids=["metrics", "slots told", "one slot unless told otherwise"],
)
def test_one_that_tells_something_is_taken_at_its_word(engine: str, facts: Facts, load: Load) -> None:
    roster = fleet(engine, facts=facts)
    roster.sampled("a", load, IDLE, NOW)
    assert seen(roster).limited_by is LimitedBy.SLOTS


def test_the_machines_own_memory_is_spared() -> None:
    spark = replace(DEVICE, memory=128_000_000_000, budget=0.80)
    backend = Backend("a", "vllm", spark, headroom=0.80)
    roster = Roster()
    roster.apply(replace(plan(), backends=(backend,)), {"a": Endpoint("a", "http://127.0.0.1:9", "vllm")})
    roster.discovered("a", Facts(models=(FoundModel("m", window=4096),), pool_tokens=POOL, block=16))
    for k in range(200):
        roster.sampled("a", Load(running=1, kv_usage=1.0, preemptions=0.0), IDLE, NOW + 5 * k)
    assert seen(roster, NOW + 1000).headroom <= 0.98
    member = roster["a"]
    room = member.capacity
    if room.pool_bytes and room.weights_bytes:
        assert room.weights_bytes + member.observer.headroom.share * room.pool_bytes <= 122_000_000_000
