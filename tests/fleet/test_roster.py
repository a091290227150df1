"""What the roster makes of load samples: whose the tokens are, and how much room is left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.config.catalog import known_model
from gateway.config.endpoint import Endpoint
from gateway.core.backend import Backend
from gateway.core.failure import FailureKind
from gateway.core.ledger import Totals
from gateway.core.plan import Breaker
from gateway.core.snapshot import BackendView
from gateway.engines.adapter import Facts, FoundModel, Load
from gateway.fleet.roster import Roster
from tests.core.fleet import DEVICE, NOW, plan

known_model("m")


def fleet(*, engine: str = "llama.cpp", slots: int = 2, window: int = 4096, pool: int = 8192) -> Roster:
    """One backend `a` that was discovered."""
    roster = Roster()
    backend = Backend("a", engine, DEVICE, shares_prefix=engine == "vllm", keeps_sequences=engine == "llama.cpp")
    roster.apply(replace(plan(), backends=(backend,)), {"a": Endpoint("a", "http://127.0.0.1:9", engine)})
    found = Facts(models=(FoundModel("m", window=window),), slots=slots, pool_tokens=pool, block=1)
    roster.discovered("a", found)
    return roster


IDLE, OURS = Totals(), Totals(running=1, reserved=1000)


def seen(roster: Roster, totals: Totals = IDLE, now: float = NOW) -> BackendView:
    (view,) = roster.snapshot(now, lambda _: totals, lambda _: (1.0, 1.0)).views
    return view


def test_an_answer_of_ours_that_outgrew_its_reservation_is_nobody_elses() -> None:
    roster = fleet()
    roster.held("a", OURS, NOW)
    for _ in range(10):
        roster.sampled("a", Load(running=1, kv_tokens=3900), OURS, NOW)
    assert seen(roster, OURS).foreign == 0


@pytest.mark.parametrize("running", [0, None])
def test_what_others_held_is_gone_as_soon_as_the_engine_shows_nothing(running: int | None) -> None:
    roster = fleet()
    for _ in range(20):
        roster.sampled("a", Load(running=None if running is None else 1, kv_tokens=3000), IDLE, NOW)
    assert seen(roster).foreign > 2500
    roster.sampled("a", Load(running=running, kv_tokens=0), IDLE, NOW)
    assert seen(roster).foreign == 0


def test_others_hold_no_more_than_what_they_run_can() -> None:
    roster = fleet(slots=8, pool=32_768)
    for _ in range(50):
        roster.sampled("a", Load(running=2, kv_tokens=30_000), OURS, NOW)
    assert seen(roster, OURS).foreign == 4096


def test_a_sample_is_compared_with_what_was_ours_when_it_was_asked_for() -> None:
    roster = fleet(engine="vllm", window=100_000, pool=1_000_000)
    ours = Totals(running=2, reserved=300_000, held=250_000, holdable=250_128)
    roster.held("a", ours, NOW)
    roster.held("a", IDLE, NOW + 3.0)
    roster.sampled("a", Load(running=2, kv_tokens=250_000), IDLE, NOW + 5.0, asked=NOW + 2.0)
    assert seen(roster).foreign == 0, "a slow answer of an engine that still ran them"
    roster.sampled("a", Load(running=2, kv_tokens=250_000), IDLE, NOW + 10.0, asked=NOW + 9.9)
    assert seen(roster, now=NOW + 10.0).foreign == 50_000, "they are gone for long, so these are others'"


def test_a_slot_with_a_window_of_its_own_needs_no_headroom() -> None:
    assert seen(fleet()).headroom == 1.0
    assert seen(fleet(pool=4096)).headroom == 0.92, "one pool shared by all slots"
    assert seen(fleet(engine="vllm")).headroom == 0.92


def test_what_ran_when_an_engine_died_is_told_from_what_was_sent_to_it_after() -> None:
    roster = fleet()
    assert all(roster.died("a", sent_at, NOW + 1.0) for sent_at in (NOW - 5.0, NOW, NOW + 1.0))
    assert not roster.died("a", NOW + 2.0, NOW + 3.0), "it resets whatever it gets"
    roster.progressed("a", NOW + 4.0)
    assert roster.died("a", NOW + 3.5, NOW + 5.0), "it worked in between"
    assert not roster.died("a", NOW + 6.0, NOW + 7.0)
    roster.reached("a", NOW + 8.0, restarted=True)
    assert roster.died("a", NOW + 9.0, NOW + 10.0)


def pair() -> Roster:
    """`house`, cleared for everything, and `cloud`, cleared for less, of the same model."""
    roster = Roster()
    backends = tuple(Backend(name, "vllm", DEVICE) for name in ("house", "cloud"))
    policy = replace(plan(), backends=backends, breaker=Breaker(failures=3, open=2.0, cap=16.0))
    roster.apply(policy, {b.name: Endpoint(b.name, "http://127.0.0.1:9", "vllm") for b in backends})
    for backend in backends:
        roster.discovered(backend.name, Facts(models=(FoundModel("m", window=4096),)))
    return roster


def test_the_last_backend_that_a_request_may_use_is_not_switched_off_by_what_may_pass() -> None:
    roster = pair()
    for _ in range(10):
        roster.failed("house", FailureKind.SERVER, NOW, alternatives=())
    assert not roster.rests("house", NOW)
    for _ in range(3):
        roster.failed("house", FailureKind.SERVER, NOW, alternatives=("cloud",))
    assert roster.rests("house", NOW)


@pytest.mark.parametrize(("sole", "longest"), [(True, 2.0), (False, 16.0)])
def test_it_rests_no_longer_for_the_sake_of_others_while_some_have_only_it(sole: bool, longest: float) -> None:
    roster, now, rests = pair(), NOW, []
    for _ in range(6):
        if sole:
            roster.sole("house", now)
        for _ in range(3):
            roster.failed("house", FailureKind.SERVER, now, alternatives=("cloud",))
        retry_at = roster["house"].breaker.retry_at
        assert retry_at is not None
        rests.append(retry_at - now)
        now = retry_at
    assert max(rests) == longest
