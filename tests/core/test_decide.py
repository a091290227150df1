from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.core.decide import decide
from gateway.core.decision import Trace, Verdict
from gateway.core.plan import ClassPolicy, Route
from gateway.core.reasons import Reason
from gateway.core.request import Estimate
from gateway.core.snapshot import Health
from tests.core.fleet import NOW, hit, offer, plan, request, snapshot, view


def test_the_same_arguments_give_the_same_decision() -> None:
    fleet = snapshot(view("a"), view("b"), view("c", running=3, reserved=4000, decoding=3))
    asked = request(placement=77)
    assert decide(plan(), asked, fleet, NOW, 0.3) == decide(plan(), asked, fleet, NOW, 0.3)


def test_predictions_are_the_seconds_of_the_device() -> None:
    busy = view("a", running=2, reserved=9000, decoding=1, backlog=1.0, prefill_factor=1.5, decode_factor=2.0)
    decision = decide(plan(), request(prompt=10_000), snapshot(busy), NOW, 0.0)
    prefill = 10_000 / 5000 * 1.5
    held_up = prefill * (1 + 1 / 2048)
    assert decision.predicted_prefill == pytest.approx(held_up)
    steps = 0.5 + 5  # what is left of the one under way, and one with each chunk of 2,048 tokens
    assert decision.predicted_ttft == pytest.approx(1.0 + held_up + steps * 0.02 * 2.0)
    idle = decide(plan(), request(prompt=10_000), snapshot(view("a", backlog=1.0)), NOW, 0.0)
    assert idle.predicted_ttft == pytest.approx(1.0 + 10_000 / 5000), "nobody decodes beside it"
    assert decision.predicted_tpot == pytest.approx(0.02 * 2.0), "its own prompt is read by then"
    pressed = decide(plan(), request(prompt=10_000), snapshot(replace(busy, prefill_pressure=8.0)), NOW, 0.0)
    each = 0.4 / held_up * 200 * 0.04 / 0.6  # prompts as long as its own that cut into 200 tokens of 40 ms
    assert each > 1.0
    assert pressed.predicted_tpot == pytest.approx(0.04 / (1 - 0.4 * (1 - 1 / (3 * each))))
    rare = decide(plan(), request(prompt=10_000, output=10), snapshot(replace(busy, prefill_pressure=8.0)), NOW, 0.0)
    assert rare.predicted_tpot == pytest.approx(0.04), "most answers of ten tokens see none"


def test_what_is_cached_is_not_read_again() -> None:
    decision = decide(plan(), request(prompt=10_000, hits={"a": hit(0.8)}), snapshot(view("a")), NOW, 0.0)
    assert decision.footprint is not None
    assert (decision.footprint.cached, decision.footprint.uncached) == (8000, 2000)
    assert decision.predicted_prefill == pytest.approx(2000 / 5000)


def test_the_trace_holds_every_backend_and_its_terms_add_up() -> None:
    fleet = snapshot(view("a"), view("b", health=Health.DOWN), view("c", slots=1, running=1, reserved=1000))
    trace = decide(plan(), request(), fleet, NOW, 0.0).trace
    assert [(c.backend, c.reason) for c in trace.candidates] == [
        ("a", None),
        ("b", Reason.DOWN),
        ("c", Reason.SLOTS_FULL),
    ]
    for candidate in trace.candidates:
        if candidate.reason is Reason.DOWN:
            assert candidate.total is None
        else:
            assert candidate.total == pytest.approx(sum(seconds for _, seconds in candidate.terms))
            assert candidate.footprint is not None
    assert [name for name, _ in trace.candidates[0].terms] == [
        "completion_time",
        "harm_to_others",
        "deadline_risk",
        "move_penalty",
        "overflow_risk",
        "eviction",
    ]


def test_a_served_name_other_than_the_model_is_passed_on() -> None:
    fleet = snapshot(view("a", offers=(offer("m", served_as="vendor/m-fp8"),)))
    decision = decide(plan(), request(), fleet, NOW, 0.0)
    assert (decision.model, decision.served_as) == ("m", "vendor/m-fp8")


def test_a_new_prefix_goes_to_one_place_whatever_the_roll_and_the_order() -> None:
    views = [view(name) for name in "abcdef"]
    chosen = {
        decide(plan(), request(placement=123456789), snapshot(*ordered), NOW, roll).backend
        for ordered in (views, views[::-1])
        for roll in (0.0, 0.5, 0.99)
    }
    assert len(chosen) == 1


def test_new_prefixes_spread_over_the_fleet() -> None:
    fleet = snapshot(*(view(name) for name in "abcd"))
    chosen = [decide(plan(), request(placement=i * 2654435761 + 1), fleet, NOW, 0.0).backend for i in range(400)]
    assert all(60 <= chosen.count(name) <= 140 for name in "abcd")


def test_losing_a_backend_moves_only_its_own_prefixes() -> None:
    views = [view(name) for name in "abcd"]
    before = {i: decide(plan(), request(placement=i), snapshot(*views), NOW, 0.0).backend for i in range(1, 200)}
    after = {i: decide(plan(), request(placement=i), snapshot(*views[:3]), NOW, 0.0).backend for i in range(1, 200)}
    assert all(after[i] == before[i] for i in before if before[i] != "d")


def test_rolls_spread_equally_warm_backends() -> None:
    fleet = snapshot(*(view(name) for name in "abc"))
    warm = request(placement=5, hits={name: hit(0.9) for name in "abc"})
    assert {decide(plan(), warm, fleet, NOW, roll).backend for roll in (0.1, 0.5, 0.9)} == {"a", "b", "c"}


def test_a_side_call_leaves_the_only_slot_of_a_long_conversation_alone() -> None:
    """Not by rule: reading 200 tokens elsewhere costs less than the steps it would lengthen there."""
    holder = view("b1", slots=2, running=1, reserved=30_000, decoding=1, resident=30_000)
    decision = decide(plan(), request(prompt=200, output=20), snapshot(holder, view("b2")), NOW, 0.0)
    assert decision.backend == "b2"


@pytest.mark.parametrize("running", [2, 8])
def test_affinity_yields_when_its_backend_is_full(running: int) -> None:
    holder = view("b1", slots=8, running=running, reserved=running * 5000, decoding=running)
    asked = request(prompt=4000, output=400, hits={"b1": hit(0.9)})
    decision = decide(plan(), asked, snapshot(holder, view("b2")), NOW, 0.0)
    assert decision.backend == ("b1" if running == 2 else "b2")


def test_a_goal_already_missed_makes_seconds_dearer_but_nobody_is_refused_for_it() -> None:
    late = plan(Route("m", "m", ttft=1.0))
    decision = decide(late, request(prompt=20_000, waited=30.0), snapshot(view("a")), NOW, 0.0)
    assert decision.verdict is Verdict.ADMIT
    terms = dict(decision.trace.candidates[0].terms)
    assert terms["deadline_risk"] == pytest.approx(3.0 * (30.0 + 4.0 - 1.0))


def test_a_goal_that_grows_with_the_prompt_is_kept_by_long_ones_too() -> None:
    """20,000 tokens take 4 s there: late by 3 s of a fixed goal, in time where 1,000 tokens add a quarter second."""
    asked, fleet = request(prompt=20_000), snapshot(view("a"))
    risks = []
    for goal in (Route("m", "m", ttft=1.0), Route("m", "m", ttft=1.0, ttft_per_token=0.25 / 1000)):
        decision = decide(plan(goal), asked, fleet, NOW, 0.0)
        risks.append(dict(decision.trace.candidates[0].terms)["deadline_risk"])
    assert risks == [pytest.approx(3.0 * 3.0), 0.0]


SHEDDING = Route("m", "m", ttft=1.0, ttft_per_token=0.25 / 1000, sheds=True)


@pytest.mark.parametrize(
    ("waited", "backlog", "verdict"),
    [(0.0, 0.0, Verdict.ADMIT), (1.9, 0.0, Verdict.ADMIT), (2.1, 0.0, Verdict.REJECT), (0.0, 2.1, Verdict.REJECT)],
)
def test_where_wanted_what_misses_its_goal_everywhere_is_turned_away(
    waited: float, backlog: float, verdict: Verdict
) -> None:
    fleet = snapshot(view("a", backlog=backlog), view("b", prefill_factor=3.0))
    decision = decide(plan(SHEDDING), request(prompt=20_000, waited=waited), fleet, NOW, 0.0)
    assert decision.verdict is verdict
    assert (decision.reason is Reason.DEADLINE, decision.retry_after) == (
        (True, 1) if verdict is Verdict.REJECT else (False, None)
    )
    patient = decide(plan(replace(SHEDDING, sheds=False)), request(prompt=20_000, waited=waited), fleet, NOW, 0.0)
    assert patient.verdict is not Verdict.REJECT


def test_what_is_never_shed_is_not_turned_away_for_a_goal_nor_the_rest_of_an_answer() -> None:
    kept = replace(plan(SHEDDING), classes={"default": ClassPolicy("default", sheddable=False)})
    assert decide(kept, request(waited=50.0), snapshot(view("a")), NOW, 0.0).verdict is Verdict.ADMIT
    rest = replace(request(waited=50.0), resumed=1)
    assert decide(plan(SHEDDING), rest, snapshot(view("a")), NOW, 0.0).verdict is Verdict.ADMIT
    assert decide(plan(SHEDDING), replace(rest, resumed=0), snapshot(view("a")), NOW, 0.0).verdict is Verdict.REJECT


def test_a_tokenizer_that_nobody_asked_about_borrows_the_numbers_of_the_model_asked_for() -> None:
    fleet = snapshot(view("a", offers=(offer("weights"),)))
    alias = plan(Route("m", "weights"))
    decision = decide(alias, request(estimates={"m": Estimate(500, 520, 10, 20)}), fleet, NOW, 0.0)
    assert decision.footprint is not None
    assert decision.footprint.prompt == 500


def test_a_request_without_any_estimate_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="no estimate"):
        decide(plan(), request(estimates={}), snapshot(view("a")), NOW, 0.0)


def test_more_room_never_turns_a_yes_into_a_wait() -> None:
    tight = view("a", running=3, reserved=50_000, decoding=3)
    asked = request(prompt=20_000)
    assert decide(plan(), asked, snapshot(tight), NOW, 0.0).verdict is Verdict.ADMIT
    for roomier in (replace(tight, pool=200_000), replace(tight, slots=64), replace(tight, headroom=0.98)):
        assert decide(plan(), asked, snapshot(roomier), NOW, 0.0).verdict is Verdict.ADMIT


def test_a_trace_is_a_value_whether_it_was_read_or_not() -> None:
    fleet = snapshot(view("a"), view("b", slots=1, running=1), view("c", offers=(offer("other"),)))
    asked = request(hits={"b": hit(0.5)})
    read, unread = (decide(plan(), asked, fleet, NOW, 0.5) for _ in range(2))
    before = read.alternatives
    rows = read.trace.candidates
    assert rows is read.trace.candidates
    assert read.alternatives == before == unread.alternatives == {"b"}
    assert read == unread
    assert hash(read.trace) == hash(unread.trace)
    assert read.trace == Trace(rows)
    assert unread.trace != Trace(rows[:2])
    assert read.trace != rows
    assert repr(unread.trace) == repr(Trace(rows))


def test_what_has_no_answer_is_decided_upon_beside_other_prompts_too() -> None:
    """Embeddings: no token is written, so none is slowed down."""
    busy = view(decoding=1, running=1, resident=1000, prefill_pressure=4.0)
    asked = request(prompt=1000, output=0, output_high=0)
    assert decide(plan(), asked, snapshot(busy), NOW, 0.5).verdict is Verdict.ADMIT
