"""Sizes of the KV cache by device and model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.sim.hardware import DEVICES, MODELS
from gateway.sim.profile import engine_profile


@pytest.mark.parametrize("device", sorted(DEVICES))
@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_pool_holds_one_full_request(device: str, model: str) -> None:
    profile = engine_profile(device, model)
    assert profile.blocks_for(profile.max_model_len) <= profile.num_blocks
    assert profile.kv_cache_size_tokens >= profile.max_model_len


def test_plain_models_page_by_16_tokens_and_hybrids_by_the_size_of_their_state() -> None:
    assert engine_profile("rtx-pro-6000", "Qwen3-30B-A3B").block_size == 16
    hybrid = engine_profile("rtx-pro-6000", "Qwen3.6-27B")
    assert hybrid.block_size == 784  # what vLLM uses for this model with 16-bit KV
    assert hybrid.state_blocks == 6


def test_a_3090_holds_far_less_than_a_spark() -> None:
    spark, small = engine_profile("dgx-spark"), engine_profile("rtx-3090")
    assert 40_000 < small.kv_cache_size_tokens < 60_000
    assert spark.kv_cache_size_tokens > 10 * small.kv_cache_size_tokens


def test_a_window_longer_than_the_pool_is_refused() -> None:
    with pytest.raises(ValueError, match="hold no request of max_model_len"):
        replace(engine_profile("rtx-3090"), max_model_len=100_000)


def test_a_batch_wider_than_the_token_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="max_batched_tokens"):
        replace(engine_profile("rtx-3090"), max_batched_tokens=8)
