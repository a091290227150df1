"""Slots, pool and block, each from the best source."""

from __future__ import annotations

import pytest

from gateway.config.capacity import capacity, kv_pool_bytes, sequences_that_fit
from gateway.config.offers import serving
from gateway.core.kv.shape import KvShape
from tests.config.fleet import pair

GIB = 1024**3
MODEL = "models: [{id: Qwen3-8B, weights: fp8, kv: fp8, context: 32768}]"


def held(fields: str, **found: int):
    known, address = pair(fields)
    return capacity(known, address, serving(known, address), **found)


def test_a_device_leaves_what_weights_and_working_space_do_not_take() -> None:
    found = held(f"engine: vllm, device: rtx-3090, {MODEL}")
    # 24 GiB x 0.9, less 8.19e9 bytes of weights, less 2 GiB for activations and graphs.
    assert found.weights_bytes == pytest.approx(8.19e9, rel=0.001)
    assert found.pool_bytes == pytest.approx(24 * GIB * 0.9 - 8.19e9 - 2 * GIB, rel=0.001)
    assert found.pool_tokens == int(found.pool_bytes / 73_728)
    assert dict(found.sources)["pool"] == "device memory less weights"
    assert (found.slots, found.block) == (256, 16)


def test_the_engines_word_counts_more_than_arithmetic() -> None:
    found = held(f"engine: vllm, device: rtx-3090, {MODEL}", slots=32, pool_tokens=123_456, block=32)
    assert (found.slots, found.pool_tokens, found.block) == (32, 123_456, 32)
    assert dict(found.sources) == {"pool": "engine", "slots": "engine", "block": "engine"}


def test_the_files_word_counts_most() -> None:
    found = held(f"engine: vllm, device: rtx-3090, kv_pool: 50000 tokens, running: 3, {MODEL}", slots=32, pool_tokens=9)
    assert (found.slots, found.pool_tokens) == (3, 50_000)
    assert (dict(found.sources)["pool"], dict(found.sources)["slots"]) == ("declared", "declared")
    by_size = held(f"engine: vllm, device: rtx-3090, kv_pool: 9GiB, {MODEL}", pool_tokens=9)
    assert by_size.pool_tokens == 9 * GIB // 73_728


def test_nothing_known_is_said_and_not_made_up() -> None:
    found = held("engine: openai")
    assert (found.pool_tokens, found.pool_bytes, found.weights_bytes) == (0, 0, 0)
    assert dict(found.sources)["pool"] == "not known"
    assert found.slots == 8


def test_a_device_that_the_weights_overfill_has_no_pool() -> None:
    known, address = pair("engine: llama.cpp, device: rtx-3090, models: [{id: Qwen3-32B, weights: bf16}]")
    served = serving(known, address)
    assert kv_pool_bytes(known, served[0].weights_bytes) < 0
    assert capacity(known, address, served).pool_tokens == 0


def test_weights_are_copied_for_each_group_in_vllm_and_split_in_llama_cpp() -> None:
    one = held(f"engine: vllm, device: rtx-3090, {MODEL}").weights_bytes
    assert (
        held(f"engine: vllm, device: rtx-3090, devices: {{count: 4, tensor_parallel: 2}}, {MODEL}").weights_bytes
        == 2 * one
    )
    assert held(f"engine: llama.cpp, device: rtx-3090, devices: {{count: 4}}, {MODEL}").weights_bytes == one


def test_the_hungriest_of_several_models_counts_the_pool() -> None:
    both = held("engine: vllm, device: h200, kv_pool: 40GiB, models: [Qwen3-8B, gpt-oss-20b]")
    assert both.pool_tokens == 40 * GIB // 147_456


def test_sequences_hold_their_constant_part_each() -> None:
    shape = KvShape(bytes_per_token=1024.0, state_bytes=1024**2)
    assert sequences_that_fit(shape, 9 * 1024**2, 8192) == 1
    assert sequences_that_fit(shape, 18 * 1024**2, 8192) == 2
