"""Step times against the formula and against published measurements."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gateway.sim.hardware import DEVICES, MODELS
from gateway.sim.profile import engine_profile


def test_prefill_in_chunks_adds_up_to_the_whole() -> None:
    times = engine_profile("dgx-spark").step_time
    whole = times.prefill_s(10_000, 500)
    parts = sum(times.prefill_s(min(2048, 10_000 - at), 500 + at) for at in range(0, 10_000, 2048))
    assert parts == pytest.approx(whole, rel=1e-12)


def test_one_token_at_half_depth_costs_twice_as_much() -> None:
    times = engine_profile("dgx-spark").step_time
    depth = int(times.prefill_half_depth)
    assert times.prefill_s(1, depth) == pytest.approx(2 * times.prefill_token_s, rel=1e-3)


@pytest.mark.parametrize("device", sorted(DEVICES))
@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_step_grows_with_batch_and_context_but_less_than_in_proportion(device: str, model: str) -> None:
    times = engine_profile(device, model).step_time
    steps = [times.decode_s(batch, 100 * batch) for batch in range(1, 200)]
    assert all(later > earlier for earlier, later in pairwise(steps))
    assert all(step <= steps[0] * batch for batch, step in enumerate(steps, 1))


def test_a_batch_never_reads_more_than_all_weights() -> None:
    times = engine_profile("dgx-spark").step_time
    assert times.weights_s(1000) <= times.shared_weights_s + times.expert_weights_s


# llama.cpp benches/dgx-spark and noonghunna/club-3090: tokens/s of single streams, of batches, and of prefill.
def test_single_stream_decode_on_the_spark() -> None:
    times = engine_profile("dgx-spark").step_time
    assert 1 / times.decode_s(1, 16) == pytest.approx(61.06, rel=0.06)
    assert 1 / times.decode_s(1, 8192) == pytest.approx(48.02, rel=0.06)


def test_batched_decode_on_the_spark() -> None:
    times = engine_profile("dgx-spark").step_time
    assert 8 / times.decode_s(8, 8 * 4096) == pytest.approx(120.36, rel=0.15)
    assert 32 / times.decode_s(32, 32 * 512) == pytest.approx(346.53, rel=0.15)


def test_prefill_on_the_spark() -> None:
    times = engine_profile("dgx-spark").step_time
    assert 2048 / times.prefill_s(2048) == pytest.approx(2986.97, rel=0.05)
    assert 2048 / times.prefill_s(2048, 8192) == pytest.approx(2354.14, rel=0.05)


def test_a_dense_27b_on_a_3090() -> None:
    times = engine_profile("rtx-3090", "Qwen3.6-27B").step_time
    assert 1 / times.decode_s(1, 400) == pytest.approx(41.3, rel=0.15)
    assert 10_000 / times.prefill_s(10_000) == pytest.approx(1025, rel=0.05)


def test_hardware_twice_as_fast_takes_half_the_time() -> None:
    profile = engine_profile("rtx-3090")
    fast = profile.scaled(2.0).step_time
    assert fast.step_s(3, 900, [(64, 0)]) == pytest.approx(profile.step_time.step_s(3, 900, [(64, 0)]) / 2)
