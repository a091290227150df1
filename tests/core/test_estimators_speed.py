"""Speed priors against published measurements, and the factor learned on top."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config import catalog
from gateway.core.estimators.decode_speed import DecodeSpeed
from gateway.core.estimators.learned_factor import ALARMED_RATE, LearnedFactor
from gateway.core.estimators.prefill_speed import PrefillSpeed
from gateway.core.estimators.speed_prior import SpeedPrior, speed_prior
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.model import ModelShape

GIB = 1 << 30


@dataclass(frozen=True)
class Rates:
    """Paper figures of a device, and the share of its 16-bit rate that prefill reaches."""

    bandwidth: float
    flops: float
    mfu: float = 0.3
    step_overhead: float = 0.002
    sequence_overhead: float = 0.0003


SPARK = Rates(273e9, 125e12, 0.25, step_overhead=0.003)
RTX_3090 = Rates(936e9, 71e12, 0.7)
RTX_4090 = Rates(1008e9, 165e12, 0.6)
RTX_5090 = Rates(1792e9, 210e12)
RTX_A6000 = Rates(768e9, 155e12)
PRO_6000 = Rates(1792e9, 500e12)
STRIX_HALO = Rates(256e9, 59.4e12, 0.33)


def prior(device: Rates, model: str, weights_gib: float, tp: int = 1) -> SpeedPrior:
    shape = catalog.known_model(model)
    assert shape is not None
    return speed_prior(device, shape, weight_bytes=weights_gib * GIB / shape.params_total, tp=tp)


# Public figures: llama.cpp benches/dgx-spark.md (builds 6918, 7941), XiongjieDai/GPU-Benchmarks-on-LLM-Inference,
# sudoingX/qwen38-mtp, kyuz0/amd-strix-halo-toolboxes, noonghunna/club-3090.
@pytest.mark.parametrize(
    ("device", "model", "weights_gib", "context", "observed"),
    [
        (SPARK, "Qwen2.5-7B", 7.54, 0, 29.3),
        (SPARK, "Qwen2.5-7B", 7.54, 32_768, 22.7),
        (RTX_3090, "Llama-3.1-8B", 4.58, 1024, 111.74),
        (RTX_3090, "Llama-3.3-70B", 39.59, 1024, 16.29),
        (RTX_3090, "Qwen3.8-27B", 16.7, 200, 41.3),
        (RTX_4090, "Llama-3.1-8B", 14.96, 1024, 54.34),
        (RTX_4090, "Llama-3.1-8B", 4.58, 1024, 127.74),
        (RTX_5090, "Qwen3.8-27B", 16.7, 200, 76.9),
        (RTX_A6000, "Llama-3.1-8B", 14.96, 1024, 40.25),
        (PRO_6000, "Qwen3.8-27B", 16.7, 200, 63.8),
        (STRIX_HALO, "Gemma-4-31B", 17.46, 64, 10.55),
        (STRIX_HALO, "Qwen3.8-27B", 16.7, 200, 11.5),
    ],
)
def test_dense_decode_alone(device: Rates, model: str, weights_gib: float, context: int, observed: float) -> None:
    assert 1.0 / prior(device, model, weights_gib).step_seconds(1, context) == pytest.approx(observed, rel=0.25)


@pytest.mark.parametrize(
    ("model", "weights_gib", "batch", "context", "observed"),
    [
        ("Qwen2.5-7B", 7.54, 8, 512, 195.67),
        ("Qwen2.5-7B", 7.54, 32, 512, 593.27),
        ("gpt-oss-120b", 59.02, 1, 64, 58.72),
        ("gpt-oss-120b", 59.02, 1, 32_768, 42.76),
        ("gpt-oss-120b", 59.02, 32, 512, 353.31),
        ("Qwen3-30B-A3B", 30.25, 1, 64, 61.06),
        ("Qwen3-30B-A3B", 30.25, 32, 512, 346.53),
    ],
)
def test_batches_on_a_spark(model: str, weights_gib: float, batch: int, context: int, observed: float) -> None:
    step = prior(SPARK, model, weights_gib).step_seconds(batch, batch * context)
    assert batch / step == pytest.approx(observed, rel=0.25)


@pytest.mark.parametrize(
    ("device", "model", "weights_gib", "prompt", "depth", "observed"),
    [
        (SPARK, "Qwen2.5-7B", 7.54, 2048, 0, 2276.28),
        (SPARK, "Qwen2.5-7B", 7.54, 2048, 32_768, 1283.36),
        (SPARK, "gpt-oss-120b", 59.02, 2048, 0, 2443.91),
        (SPARK, "gpt-oss-120b", 59.02, 2048, 32_768, 1567.08),
        (RTX_3090, "Llama-3.1-8B", 4.58, 1024, 0, 3865.39),
        (STRIX_HALO, "Gemma-4-31B", 17.46, 512, 0, 322.69),
    ],
)
def test_prefill(device: Rates, model: str, weights_gib: float, prompt: int, depth: int, observed: float) -> None:
    seconds = prior(device, model, weights_gib).prefill_seconds(prompt, depth)
    assert prompt / seconds == pytest.approx(observed, rel=0.25)


def test_prefill_in_parts_costs_as_much_as_at_once() -> None:
    speed = PrefillSpeed(277e-6, 47_700)
    assert speed.seconds(3000) + speed.seconds(5000, 3000) == pytest.approx(speed.seconds(8000))
    assert speed.seconds(0, 9000) == 0.0
    for depth, observed in ((0, 3611), (4096, 3361), (8192, 3148), (16_384, 2686)):
        assert 512 / speed.seconds(512, depth) == pytest.approx(observed, rel=0.03)


STEPS = st.builds(
    DecodeSpeed,
    overhead_seconds=st.floats(0, 0.01),
    weight_seconds=st.floats(1e-4, 0.1),
    kv_seconds_per_token=st.floats(0, 1e-6),
    sequence_seconds=st.floats(0, 0.01),
    expert_seconds=st.floats(0, 1.0),
    expert_share=st.floats(0, 0.5),
)


@settings(deadline=None)
@given(STEPS, st.integers(1, 256), st.integers(0, 10**6))
def test_more_work_never_takes_less_time(speed: DecodeSpeed, batch: int, kv: int) -> None:
    assert speed.step_seconds(batch + 1, kv) >= speed.step_seconds(batch, kv) * (1 - 1e-9)
    assert speed.step_seconds(batch, kv + 1000) >= speed.step_seconds(batch, kv)
    assert speed.step_seconds(0, 0) == 0.0


@settings(deadline=None)
@given(STEPS, st.integers(1, 256))
def test_a_batch_is_never_slower_than_one_by_one(speed: DecodeSpeed, batch: int) -> None:
    assert speed.step_seconds(batch, 0) <= batch * speed.step_seconds(1, 0) * (1 + 1e-9)


def test_the_fourth_stream_on_experts_doubles_the_step() -> None:
    spark = prior(SPARK, "gpt-oss-120b", 59.02)
    assert spark.step_seconds(4) / spark.step_seconds(1) == pytest.approx(2.0, rel=0.1)


def test_two_devices_share_the_reads_but_not_the_overhead() -> None:
    one, two = prior(SPARK, "Qwen2.5-7B", 7.54), prior(SPARK, "Qwen2.5-7B", 7.54, tp=2)
    assert two.decode.weight_seconds == pytest.approx(one.decode.weight_seconds / 2)
    assert two.decode.overhead_seconds == 2 * one.decode.overhead_seconds
    assert two.prefill_seconds(1000) == pytest.approx(one.prefill_seconds(1000) / 2)


def test_a_smaller_cache_dtype_reads_faster() -> None:
    shape = catalog.known_model("Llama-3.1-8B")
    assert shape is not None
    half, quarter = (
        speed_prior(RTX_3090, shape, kv_dtype=d).decode.kv_seconds_per_token for d in (KvDtype.F16, KvDtype.FP8)
    )
    assert half == 2 * quarter


def test_a_model_nobody_knows_is_taken_for_eight_billion() -> None:
    known = catalog.known_model("Llama-3.1-8B")
    assert known is not None
    guess = speed_prior(RTX_3090, ModelShape("mystery", (), kv_known=False))
    assert guess.step_seconds(1) == pytest.approx(speed_prior(RTX_3090, known).step_seconds(1), rel=0.1)


def test_unlisted_experts_are_noticed_by_the_sizes() -> None:
    listed = ModelShape("l", (), params_total=117e9, params_active=5.1e9, read_params=5.1e9, kv_known=False)
    speed = speed_prior(SPARK, listed, weight_bytes=0.54)
    assert speed.step_seconds(8) > 2.0 * speed.step_seconds(1)
    dense = ModelShape("d", (), params_total=8e9, params_active=8e9, read_params=7.5e9, kv_known=False)
    assert speed_prior(SPARK, dense).decode.expert_seconds == 0.0


def test_factor_learns_a_slow_backend() -> None:
    factor, rng = LearnedFactor(), random.Random(1)
    assert factor.factor(0.0) == 1.0
    assert factor.sigma > 0.7
    for i in range(60):
        factor.learn(2.5 * rng.lognormvariate(0, 0.1), 1.0, float(i))
    assert factor.factor(60.0) == pytest.approx(2.5, rel=0.1)
    assert factor.sigma < 0.2


def test_factor_drifts_back_within_hours() -> None:
    factor = LearnedFactor()
    for _ in range(100):
        factor.learn(4.0, 1.0, 10.0)
    assert math.log(factor.factor(3610.0)) == pytest.approx(math.log(factor.factor(10.0)) / 2)
    assert factor.factor(10.0 + 24 * 3600) == pytest.approx(1.0, abs=0.01)
    factor.learn(1.0, 1.0, 10.0 + 24 * 3600)
    assert factor.factor(10.0 + 24 * 3600) == pytest.approx(1.0, abs=0.01)


def test_an_alarm_learns_faster() -> None:
    calm, alarmed = LearnedFactor(), LearnedFactor()
    for factor in (calm, alarmed):
        for _ in range(50):
            factor.learn(1.0, 1.0, 0.0)
    for _ in range(5):
        calm.learn(3.0, 1.0, 0.0)
        alarmed.learn(3.0, 1.0, 0.0, ALARMED_RATE)
    assert alarmed.factor(0.0) > 2.4 > calm.factor(0.0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-1.0, 1e9), st.floats(-1.0, 1e9), st.floats(0, 1e7)), max_size=40))
def test_factor_is_bounded(lessons: list[tuple[float, float, float]]) -> None:
    factor = LearnedFactor()
    for observed, predicted, now in lessons:
        factor.learn(observed, predicted, now)
    assert math.exp(-1.5) * 0.999 <= factor.factor(1e7) <= math.exp(1.5) * 1.001
    assert 0.0 <= factor.sigma <= 3.0
