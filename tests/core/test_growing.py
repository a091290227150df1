"""A reservation while its answer streams: it grows by what answers of its length need, in few writes; or shrinks."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.decide import decide
from gateway.core.estimators.event_size import EventSize
from gateway.core.estimators.output_length import OutputLengthEstimator
from gateway.core.growing import STEP, further_output, is_worth_a_write, prompt_change
from gateway.core.lease import Lease
from gateway.core.ledger import Ledger, Limits, Reserved
from gateway.core.output_quantiles import key_of, output_quantiles
from gateway.core.prefix.chain import fingerprint
from gateway.core.request import Estimate, Request
from gateway.core.snapshot import BackendView
from tests.core.fleet import NOW, hit, offer, plan, request, snapshot, view

LIMITS = Limits(kv=10**9, alone=10**9, sequences=100, backlog=1e9)


def leased(asked: Request, seen: BackendView | None = None) -> Lease:
    seen = view() if seen is None else seen
    decision = decide(plan(), asked, snapshot(seen), NOW, 0.5)
    assert decision.footprint is not None
    return Lease("l", asked, fingerprint([b""]), decision, seen.name, seen.offers[0], seen.block, NOW)


def taught(asked: Request, lengths: list[int]) -> OutputLengthEstimator:
    outputs = OutputLengthEstimator()
    for length in lengths:
        outputs.learn(key_of("m", asked), length, True)
    return outputs


def test_it_grows_to_what_answers_of_this_length_turn_out_to_need() -> None:
    asked = request(output=300, output_high=400)
    lease, outputs = leased(asked), taught(asked, [100, 100, 100, 100, 5000] * 80)
    assert further_output(lease, outputs, view()) == STEP, "seven of ten are short"
    lease.generated = 380
    more = further_output(lease, outputs, view())
    assert lease.reserved_output + more == pytest.approx(5000, rel=0.1)
    lease.extended += more
    assert further_output(lease, outputs, view()) == STEP


def test_the_fuller_the_backend_the_surer_it_wants_to_be() -> None:
    asked = request(output=100)
    lease = leased(asked)
    outputs = taught(asked, [random.Random(3).randint(1, 8000) for _ in range(500)])
    lease.generated = 90
    empty, half, full = [
        further_output(lease, outputs, view(reserved=reserved)) for reserved in (10_000, 60_000, 85_000)
    ]
    assert empty < half < full


@pytest.mark.parametrize(("limit", "choices"), [(500, 1), (120, 1), (500, 3)])
def test_never_beyond_the_output_limit(limit: int, choices: int) -> None:
    asked = request(output=100, output_high=100, max_tokens=limit, n=choices)
    lease, outputs = leased(asked), OutputLengthEstimator()
    while more := further_output(lease, outputs, view()):
        lease.extended += more
        lease.generated = lease.reserved_output
    assert lease.reserved_output == limit * choices


def test_never_beyond_the_window() -> None:
    asked = request(prompt=1000, output=100)
    lease = leased(asked, view(offers=(offer(window=2000),)))
    lease.generated = 900
    lease.extended += further_output(lease, OutputLengthEstimator(), view())
    assert lease.reserved_output == 1000
    assert further_output(lease, OutputLengthEstimator(), view()) == 0


@given(
    lengths=st.lists(st.integers(1, 30_000), min_size=1, max_size=40),
    length=st.integers(1, 30_000),
    prompt=st.integers(1, 20_000),
    limit=st.none() | st.integers(1, 40_000),
    counted=st.none() | st.floats(0.5, 1.6),
    pool=st.sampled_from([0, 60_000, 100_000]),
)
@settings(deadline=None)
def test_few_writes_never_above_the_ceiling_and_nothing_in_the_end(
    lengths: list[int], length: int, prompt: int, limit: int | None, counted: float | None, pool: int
) -> None:
    asked = request(prompt=prompt, high=int(prompt * 1.1), output=200, output_high=600, max_tokens=limit)
    lease, outputs = leased(asked, view(pool=pool)), taught(asked, lengths)
    ledger, writes = Ledger(), 1
    footprint = lease.decision.footprint
    assert footprint is not None
    assert isinstance(ledger.reserve("l", "a", footprint, 0.1, LIMITS, 0.0), Reserved)
    ledger.first_token("l", 0.1)
    ceiling = footprint.ceiling
    if counted is not None:
        exact = max(1, int(prompt * counted))
        change = prompt_change(lease, exact, None)
        if is_worth_a_write(change, footprint.kv):
            ledger.correct("l", exact, change)
            ceiling, writes = ceiling + change, writes + 1
    length = min(length, limit or length, lease.offer.window - prompt)
    for tokens in range(64, length, 64):
        grown = ledger.grow("l", tokens - lease.generated)
        lease.generated = tokens
        if grown and (more := further_output(lease, outputs, view(pool=pool))):
            assert ledger.extend("l", more, LIMITS)
            lease.extended += more
            writes += 1
        totals = ledger.totals("a", 1.0)
        assert 0 <= totals.reserved <= max(ceiling, footprint.kv)
        assert totals.resident >= 0
        assert lease.reserved_output >= tokens or more == 0
    # A step is a quarter more at least, or a twentieth of all that is reserved.
    assert writes <= 4 + length / max(STEP, 0.05 * footprint.kv)
    ledger.settle("l", 2.0)
    assert (ledger.totals("a", 2.0).reserved, ledger.totals("a", 2.0).resident) == (0, 0)


def test_most_answers_cost_three_writes_at_most() -> None:
    rng = random.Random(11)
    asked = request(prompt=2000)
    outputs = taught(asked, [1 + int(rng.lognormvariate(6.0, 1.0)) for _ in range(600)])
    writes = []
    for _ in range(300):
        usual = outputs.quantile(0.7, key_of("m", asked))
        lease = leased(request(prompt=2000, output=usual, output_high=usual))
        length, told = 1 + int(rng.lognormvariate(6.0, 1.0)), 1
        for tokens in range(64, length, 64):
            lease.generated = tokens
            if tokens >= 0.9 * lease.reserved_output:
                lease.extended += further_output(lease, outputs, view())
                told += 1
        writes.append(told)
    print(f"\n{sum(writes) / len(writes):.2f} writes a request beside its end, at most {max(writes)}")
    assert sorted(writes)[int(0.9 * len(writes))] <= 3
    assert max(writes) <= 6
    assert sum(writes) / len(writes) < 2.0


def test_a_prompt_counted_shorter_gives_whole_blocks_back() -> None:
    lease = leased(request(prompt=4000, high=4400, output=100))
    assert prompt_change(lease, 3600, None) == -800
    assert prompt_change(lease, 3610, None) == -784
    assert prompt_change(lease, 4400, None) == 0
    assert prompt_change(lease, 4401, None) == 16


def test_what_was_left_out_as_shared_and_is_not_cached_is_held_after_all() -> None:
    lease = leased(request(prompt=3200, output=100, hits={"a": hit(0.5, pinned=True)}))
    assert lease.decision.footprint is not None
    assert lease.decision.footprint.shared == 1600
    assert prompt_change(lease, 3200, 1600) == 0
    assert prompt_change(lease, 3200, 800) == 800
    assert prompt_change(lease, 3200, 0) == 1600


def test_a_change_is_written_when_it_matters() -> None:
    assert not is_worth_a_write(255, 1000)
    assert is_worth_a_write(-256, 1000)
    assert not is_worth_a_write(999, 20_000)
    assert is_worth_a_write(1000, 20_000)


def test_the_ledger_takes_the_engine_s_count_over_whatever_it_is() -> None:
    ledger = Ledger()
    footprint = leased(request(prompt=1000, output=200)).decision.footprint
    assert footprint is not None
    ledger.reserve("l", "a", footprint, 0.1, LIMITS, 0.0)
    assert ledger.correct("l", 600, -400)
    ledger.first_token("l", 0.1)
    assert ledger.totals("a", 0.2).resident == 600
    assert ledger.correct("l", 1600, 1000)
    totals = ledger.totals("a", 0.2)
    assert (totals.resident, totals.reserved) == (1600, footprint.kv + 600)
    assert ledger.correct("l", 10, -(10**9))
    assert ledger.totals("a", 0.2).reserved == 0
    ledger.settle("l", 0.3)
    assert not ledger.correct("l", 600, 0)
    assert ledger.totals("a", 0.3).reserved == 0


def test_events_of_several_tokens_are_told_from_events_of_one() -> None:
    size = EventSize()
    assert size.tokens(64) == 64
    size.learn(5, 500)
    assert size.tokens(64) == 64, "too short to tell"
    for _ in range(20):
        size.learn(100, 250)
    assert size.tokens(64) == pytest.approx(160, abs=2)
    for _ in range(40):
        size.learn(1000, 10**9)
    assert size.tokens(100) <= 1600


def test_the_first_reservation_is_the_quantile_that_the_backend_s_room_asks_for() -> None:
    estimate = Estimate(1600, 1600, 200, 800, output_roomy=320, output_tight=1600)
    asked = request(estimates={"m": estimate})
    by_room = {
        used: footprint.output
        for used in (0, 49_000, 51_000, 79_000, 81_000)
        if (footprint := leased(asked, view(reserved=used)).decision.footprint) is not None
    }
    assert by_room == {0: 320, 49_000: 320, 51_000: 800, 79_000: 800, 81_000: 1600}
    foreign = leased(asked, view(foreign=60_000)).decision.footprint
    unknown = leased(asked, view(pool=0)).decision.footprint
    assert foreign is not None
    assert unknown is not None
    assert foreign.output == unknown.output == 800
    strict = decide(plan(reserve="worst_case"), asked, snapshot(view()), NOW, 0.5).footprint
    assert strict is not None
    assert strict.output > 10_000


def test_who_waits_at_a_screen_is_provided_for_a_little_more() -> None:
    outputs = taught(request(), [random.Random(5).randint(1, 2000) for _ in range(300)])
    key = key_of("m", request())
    usual, waiting = (output_quantiles(outputs, key, klass, None) for klass in ("batch", "interactive"))
    assert usual.mean == waiting.mean
    assert all(less < more for less, more in zip(usual[1:], waiting[1:], strict=True))
    assert output_quantiles(outputs, key, "batch", 50)[1:] == (50, 50, 50)
