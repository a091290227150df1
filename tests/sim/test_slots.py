"""llama.cpp's slots: prefixes belong to a slot, and a full pool fails everybody in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.sim.engine_model import EngineModel
from gateway.sim.slots import SlotScheduler
from tests.sim.workload import drain, request, small_profile


def slotted(*, slots: int = 2, blocks: int = 64, budget: int = 64) -> EngineModel:
    return EngineModel(small_profile(seqs=slots, blocks=blocks, budget=budget, length=blocks * 16), SlotScheduler)


def cached_of(engine: EngineModel) -> list[int]:
    cached = []
    while engine.has_work:
        cached += [finished.cached_tokens for finished in engine.step(0.0).finished]
    return cached


def test_a_lone_request_takes_the_same_time_as_with_paging() -> None:
    durations = []
    for engine in (slotted(), EngineModel(small_profile())):
        engine.submit(request("a", prompt=150, output=30), 0.0)
        durations.append(drain(engine)[0])
    assert durations[0] == pytest.approx(durations[1])


def test_a_slot_reuses_the_prefix_of_its_last_text() -> None:
    engine = slotted()
    engine.submit(request("one", prompt=100, output=2, shared=80), 0.0)
    drain(engine)
    engine.submit(request("two", prompt=100, output=2, shared=80), 0.0)
    assert cached_of(engine) == [80]


def test_slots_do_not_share_prefixes() -> None:
    engine = slotted(budget=512)
    engine.submit(request("one", prompt=100, output=5, shared=80), 0.0)
    drain(engine)
    engine.submit(request("two", prompt=100, output=5, shared=80), 0.0)
    engine.submit(request("three", prompt=100, output=5, shared=80), 0.0)
    assert sorted(cached_of(engine)) == [0, 80]


def test_a_prefix_below_a_tenth_of_the_prompt_goes_to_the_slot_idle_for_longest() -> None:
    engine = slotted(budget=512)
    engine.submit(request("old", prompt=64, output=1), 0.0)
    drain(engine)
    recent = request("recent", prompt=64, output=1, shared=16)
    engine.submit(recent, 0.0)
    drain(engine)
    engine.submit(request("other", prompt=200, output=1, shared=16), 0.0)  # 16 of 200 tokens: not worth that slot
    assert cached_of(engine) == [0]
    engine.submit(replace(recent, id="again"), 0.0)
    assert cached_of(engine) == [63]


def test_more_requests_than_slots_queue_first_come_first_served() -> None:
    engine = slotted()
    for at in range(5):
        engine.submit(request(f"r{at}", prompt=20, output=3 + at), 0.0)
    engine.step(0.0)
    assert (engine.scheduler.running, engine.scheduler.waiting) == (2, 3)
    ended = []
    while engine.has_work:
        ended += [finished.id for finished in engine.step(0.0).finished]
    assert ended == sorted(ended)


def test_idle_slots_are_purged_before_anybody_fails() -> None:
    engine = slotted(slots=3, blocks=10, budget=512)
    for ident in ("one", "two"):
        engine.submit(request(ident, prompt=60, output=2), 0.0)
    drain(engine)
    engine.submit(request("three", prompt=100, output=10), 0.0)
    _, tokens = drain(engine)
    assert tokens == {"three": 10}
    assert engine.counters.failed == 0


def test_a_full_pool_fails_every_request_in_a_slot() -> None:
    engine = slotted(slots=3, blocks=10, budget=512)
    for ident in ("one", "two"):
        engine.submit(request(ident, prompt=70, output=60), 0.0)
    reasons = []
    while engine.has_work:
        reasons += [(finished.id, finished.reason) for finished in engine.step(0.0).finished]
    assert reasons == [("one", "error"), ("two", "error")]
    assert engine.counters.failed == 2
    assert engine.scheduler.kv_usage == 0


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 90), st.integers(1, 40), st.integers(0, 60)), min_size=1, max_size=12),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.5]),
)
def test_every_request_ends_whole_or_failed(work: list[tuple[int, int, int]], slots: int, horizon_s: float) -> None:
    engine = slotted(slots=slots, blocks=12, budget=40)
    made: dict[str, int] = {}
    ends: dict[str, str] = {}
    for at, (prompt, output, shared) in enumerate(work):
        engine.submit(request(f"r{at}", prompt, output, shared=min(shared, prompt)), 0.0)
    while engine.has_work:
        result = engine.step(0.0, horizon_s)
        for ident, tokens in result.emitted.items():
            made[ident] = made.get(ident, 0) + tokens
        ends |= {finished.id: finished.reason for finished in result.finished}
        assert engine.scheduler.kv_usage <= 1.0
    assert ends.keys() == {f"r{at}" for at in range(len(work))}
    assert all(made[ident] == work[int(ident[1:])][1] for ident, reason in ends.items() if reason == "length")
    assert engine.counters.failed + engine.counters.cut_by_length == len(work)


def test_an_aborted_request_leaves_its_text_in_the_slot() -> None:
    engine = slotted(budget=512)
    engine.submit(request("one", prompt=100, output=50, shared=90), 0.0)
    engine.step(0.0)
    assert engine.abort("one")
    engine.submit(request("two", prompt=100, output=1, shared=90), 0.0)
    assert cached_of(engine) == [80]
