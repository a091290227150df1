"""Prompts and answers found in the prefix cache."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.sim.engine_model import EngineModel
from gateway.sim.profile import engine_profile
from gateway.sim.sequence import SimRequest
from gateway.sim.text import SegmentText
from tests.sim.workload import drain, request, small_profile


def test_prefix_hits_are_whole_blocks_and_leave_a_token_to_compute() -> None:
    engine = EngineModel(small_profile())
    engine.submit(request("first", prompt=64, output=1, shared=64), 0.0)
    drain(engine)
    engine.submit(request("same", prompt=64, output=1, shared=64), 0.0)
    [finished] = engine.step(0.0).finished
    assert finished.cached_tokens == 48
    engine.submit(request("longer", prompt=100, output=1, shared=60), 0.0)
    drain(engine)
    assert engine.counters.prefix_hits == 48 + 48
    assert engine.counters.prefix_queries == 64 + 64 + 100


def test_a_cached_prompt_is_prefilled_in_the_time_of_its_rest() -> None:
    engine = EngineModel(small_profile())
    engine.submit(request("first", prompt=60, output=1, shared=60), 0.0)
    drain(engine)
    engine.submit(request("second", prompt=60, output=1, shared=60), 0.0)
    times = engine.profile.step_time
    assert engine.step(0.0).duration_s == pytest.approx(times.overhead_s + times.prefill_s(12, 48))


def test_an_answer_is_cached_for_the_next_turn() -> None:
    engine = EngineModel(small_profile())
    engine.submit(SimRequest("one", SegmentText([(1, 32), (2, 33)]), 32, 33), 0.0)
    drain(engine)
    engine.submit(SimRequest("two", SegmentText([(1, 32), (2, 33), (3, 20), (4, 1)]), 85, 1), 0.0)
    [finished] = drained_results(engine)
    assert finished == 64


def drained_results(engine: EngineModel) -> list[int]:
    cached = []
    while engine.has_work:
        cached += [finished.cached_tokens for finished in engine.step(0.0).finished]
    return cached


def test_a_hybrid_model_pays_for_its_state_and_hits_only_at_large_blocks() -> None:
    profile = replace(engine_profile("rtx-3090", "Qwen3.6-27B"), max_batched_tokens=4096)
    engine = EngineModel(profile)
    engine.submit(request("first", prompt=1600, output=2, shared=1500), 0.0)
    engine.step(0.0)
    assert engine.scheduler.kv_usage * profile.num_blocks == pytest.approx(3 + 6)
    drain(engine)
    engine.submit(request("second", prompt=1600, output=1, shared=1500), 0.0)
    assert drained_results(engine) == [784]
