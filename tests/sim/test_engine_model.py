"""Laws of the emulated engine."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.sim.engine_model import EngineModel, Slowdown
from gateway.sim.scheduler import PagedScheduler
from tests.sim.workload import drain, request, small_profile


def paged(engine: EngineModel) -> PagedScheduler:
    assert isinstance(engine.scheduler, PagedScheduler)
    return engine.scheduler


def test_a_single_request_takes_the_time_of_the_formulas() -> None:
    engine = EngineModel(small_profile(budget=64))
    times = engine.profile.step_time
    engine.submit(request("a", prompt=150, output=5), 0.0)
    durations = []
    emitted = []
    while engine.has_work:
        result = engine.step(0.0)
        durations.append(result.duration_s)
        emitted.append(result.emitted.get("a", 0))
    assert emitted == [0, 0, 1, 1, 1, 1, 1]
    assert sum(durations[:3]) == pytest.approx(3 * times.overhead_s + times.prefill_s(150))
    assert durations[3:] == pytest.approx([times.decode_s(1, tokens) for tokens in (151, 152, 153, 154)])


def test_decodes_go_on_while_a_long_prompt_is_prefilled_in_chunks() -> None:
    engine = EngineModel(small_profile(budget=32))
    engine.submit(request("short", prompt=16, output=50), 0.0)
    engine.step(0.0)
    engine.submit(request("long", prompt=200, output=2), 0.0)
    results = [engine.step(0.0) for _ in range(7)]
    assert all(result.emitted.get("short") == 1 for result in results)
    assert [result.emitted.get("long", 0) for result in results] == [0, 0, 0, 0, 0, 0, 1]
    assert engine.counters.prefilled_tokens == 216


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 120), st.integers(1, 60), st.integers(0, 80)), min_size=1, max_size=14),
    st.integers(12, 40),
    st.booleans(),
)
def test_every_request_gets_all_its_tokens_and_no_block_is_lost(
    work: list[tuple[int, int, int]], blocks: int, caching: bool
) -> None:
    engine = EngineModel(small_profile(blocks=blocks, length=180, caching=caching))
    wanted = {}
    for at, (prompt, output, shared) in enumerate(work):
        engine.submit(request(f"r{at}", prompt, output, shared=min(shared, prompt)), 0.0)
        wanted[f"r{at}"] = output
    _, tokens = drain(engine)
    cache = paged(engine).cache
    assert tokens == wanted
    assert cache.free_blocks == blocks
    assert cache.references() == 0
    assert engine.counters.generated_tokens == sum(wanted.values())
    assert engine.counters.cut_by_length == len(wanted)


def test_pressure_preempts_the_newest_and_every_answer_is_still_whole() -> None:
    crowded = EngineModel(small_profile(blocks=14, length=180))
    roomy = EngineModel(small_profile(blocks=64, length=180))
    preempted: list[str] = []
    for engine in (crowded, roomy):
        for ident in ("old", "mid", "new"):
            engine.submit(request(ident, prompt=60, output=80), 0.0)
    answers: dict[str, int] = {}
    while crowded.has_work:
        result = crowded.step(0.0)
        preempted += result.preempted
        for ident, count in result.emitted.items():
            answers[ident] = answers.get(ident, 0) + count
    assert answers == drain(roomy)[1]
    assert preempted[0] == "new"
    assert "old" not in preempted
    assert crowded.counters.preemptions == len(preempted) > 0
    assert roomy.counters.preemptions == 0


def test_a_preempted_request_is_computed_again_with_its_answer_so_far() -> None:
    engine = EngineModel(small_profile(blocks=14, length=180, caching=False))
    for ident in ("old", "new"):
        engine.submit(request(ident, prompt=60, output=80), 0.0)
    drain(engine)
    assert engine.counters.preemptions == 1
    assert engine.counters.prefilled_tokens > 120
    assert engine.counters.prompt_tokens == 120  # counted once


def test_admission_is_first_come_first_served_by_blocks() -> None:
    engine = EngineModel(small_profile(blocks=12, budget=512, length=180))
    engine.submit(request("big", prompt=150, output=4), 0.0)
    engine.step(0.0)
    engine.submit(request("blocked", prompt=100, output=1), 0.0)
    engine.submit(request("would fit", prompt=16, output=1), 0.0)
    assert engine.step(0.0).emitted == {"big": 1}
    assert engine.scheduler.waiting == 2
    _, tokens = drain(engine)
    assert tokens == {"big": 2, "blocked": 1, "would fit": 1}


def test_no_more_than_max_num_seqs_run() -> None:
    engine = EngineModel(small_profile(seqs=3, budget=512))
    for at in range(7):
        engine.submit(request(f"r{at}", prompt=20, output=5), 0.0)
    engine.step(0.0)
    assert (engine.scheduler.running, engine.scheduler.waiting) == (3, 4)


def test_an_abort_frees_its_blocks_at_once() -> None:
    engine = EngineModel(small_profile(seqs=1))
    engine.submit(request("running"), 0.0)
    engine.submit(request("queued"), 0.0)
    engine.step(0.0)
    assert engine.scheduler.kv_usage > 0
    assert engine.abort("running")
    assert engine.scheduler.kv_usage == 0
    assert engine.abort("queued")
    assert not engine.abort("queued")
    assert not engine.has_work
    assert engine.counters.aborted == 2


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(1, 100), st.integers(1, 40), st.integers(12, 60))
def test_memory_for_everybody_is_never_slower_than_less(count: int, prompt: int, output: int, blocks: int) -> None:
    makespans = []
    for size in (blocks, 96):
        engine = EngineModel(small_profile(blocks=size, length=180))
        for at in range(count):
            engine.submit(request(f"r{at}", prompt, output), 0.0)
        makespans.append(drain(engine)[0])
    assert makespans[0] >= makespans[1] - 1e-9


def test_the_same_work_twice_is_the_same_to_the_bit() -> None:
    runs = []
    for _ in range(2):
        engine = EngineModel(small_profile(blocks=14, length=180))
        for at in range(5):
            engine.submit(request(f"r{at}", 50 + at, 20 + at, shared=30), 0.0)
        runs.append((drain(engine), engine.counters))
    assert runs[0] == runs[1]


def test_decoding_in_bulk_takes_the_same_time_and_tokens() -> None:
    def total(horizon_s: float) -> tuple[float, int, int]:
        engine = EngineModel(small_profile(budget=512))
        for at in range(4):
            engine.submit(request(f"r{at}", 30 + at, 20 + 7 * at), 0.0)
        now, calls = 0.0, 0
        while engine.has_work:
            now += engine.step(now, horizon_s).duration_s
            calls += 1
        return now, engine.counters.generated_tokens, calls

    single, bulk = total(0.0), total(1.0)
    assert bulk[0] == pytest.approx(single[0])
    assert bulk[1] == single[1]
    assert bulk[2] < single[2] / 3


@pytest.mark.parametrize(("slow", "tokens"), [(Slowdown(decode=3.0), 0), (Slowdown(prefill=3.0), 40)])
def test_a_slow_device_is_slow_in_one_phase_only(slow: Slowdown, tokens: int) -> None:
    def durations(slowdown: Slowdown) -> list[float]:
        engine = EngineModel(small_profile())
        engine.slowdown = slowdown
        engine.submit(request("a", prompt=40, output=2), 0.0)
        return [engine.step(0.0).duration_s, engine.step(0.0).duration_s]

    healthy, slowed = durations(Slowdown()), durations(slow)
    assert slowed[1] == pytest.approx(healthy[1] * slow.decode)
    assert slowed[0] > healthy[0]
    assert slowed[0] < healthy[0] * 3.0 + 1e-9


def test_what_cannot_be_served_is_refused_at_the_door() -> None:
    engine = EngineModel(small_profile(length=100))
    with pytest.raises(ValueError, match="max_model_len"):
        engine.submit(request("long", prompt=90, output=11), 0.0)
    with pytest.raises(ValueError, match="a token"):
        engine.submit(request("nothing", prompt=10, output=0), 0.0)
    engine.submit(request("a"), 0.0)
    with pytest.raises(ValueError, match="in use"):
        engine.submit(request("a"), 0.0)
