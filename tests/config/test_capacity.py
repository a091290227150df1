"""Slots, pool and block, each from the best source."""

from __future__ import annotations

import pytest

from gateway.config.capacity import capacity, kv_pool_bytes, sequences_that_fit
from gateway.config.memory import weight_copies
from gateway.config.offers import serving
from gateway.core.kv.charge import Charge
from gateway.core.kv.engine_pool import EnginePool
from gateway.core.kv.shape import KvShape
from gateway.engines.adapter import FoundModel
from tests.config.fleet import pair

GIB = 1024**3
MODEL = "models: [{id: Qwen3-8B, weights: fp8, kv: fp8, context: 32768}]"


def held(fields: str, **found):
    known, address = pair(fields)
    return capacity(known, address, serving(known, address), **found)


def test_a_device_leaves_what_weights_and_working_space_do_not_take() -> None:
    found = held(f"engine: vllm, device: rtx-3090, {MODEL}")
    # 24 GiB x 0.9, less 8.19e9 bytes of weights, less 2 GiB for activations and graphs.
    assert found.weights_bytes == pytest.approx(8.19e9, rel=0.001)
    assert found.pool_bytes == pytest.approx(24 * GIB * 0.9 - 8.19e9 - 2 * GIB, rel=0.001)
    assert found.pool_tokens == found.pool_bytes // (16 * 73_728) * 16
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
    assert by_size.pool_tokens == 9 * GIB // (16 * 73_728) * 16


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


@pytest.mark.parametrize(
    ("engine", "count", "model", "tp", "copies"),
    [
        ("vllm", 2, "Llama-3.1-8B", 2, 1), ("vllm", 3, "Llama-3.1-8B", 1, 3), ("sglang", 6, "Llama-3.1-8B", 2, 3),
        ("vllm", 8, "DeepSeek-V3", 8, 1), ("vllm", 4, "nobody-knows-it", 4, 1), ("llama.cpp", 3, "Llama-3.1-8B", 1, 1),
    ],
)  # fmt: skip
def test_devices_share_every_layer_as_far_as_heads_divide_and_the_rest_are_copies(
    engine: str, count: int, model: str, tp: int, copies: int
) -> None:
    known, _ = pair(f"engine: {engine}, device: h100, devices: {{count: {count}}}, models: [{model}]")
    assert (known.device.tensor_parallel, weight_copies(known)) == (tp, copies)


def test_no_sequence_is_in_the_caches_of_two_copies() -> None:
    device = "engine: vllm, device: rtx-3090, models: [{id: Llama-3.1-8B, context: 131072}]"
    one, three = held(device), held(f"{device}, devices: {{count: 3}}")
    assert (one.copies, three.copies) == (1, 3)
    assert three.weights_bytes == 3 * one.weights_bytes
    assert three.longest == pytest.approx(one.longest, abs=16)
    for tokens in (8192, 30_000, 131_072):
        assert three.sequences(tokens) == 3 * one.sequences(tokens)
    assert three.sequences(60_000) == 0 < three.pool_tokens // 60_000


def test_the_hungriest_of_several_models_counts_the_pool() -> None:
    both = held("engine: vllm, device: h200, kv_pool: 40GiB, models: [Qwen3-8B, gpt-oss-20b]")
    assert both.pool_tokens == 40 * GIB // (16 * 147_456) * 16


def test_sequences_hold_their_constant_part_each() -> None:
    shape = KvShape(bytes_per_token=1024.0, state_bytes=1024**2)
    assert sequences_that_fit(shape, 9 * 1024**2, 8192) == 1
    assert sequences_that_fit(shape, 18 * 1024**2, 8192) == 2


HYBRID = "engine: vllm, device: rtx-3090, models: [{id: Qwen3.6-35B-A3B, weights: int4, kv: fp8}]"
LOGGED = EnginePool(blocks=299, concurrency=299 / 69)
"""The figures of a published log: 567,978 tokens, 4.33 requests of 131,072 tokens."""


def hybrid(fields: str = HYBRID, window: int = 131_072, **found):
    known, address = pair(fields)
    served = serving(known, address, [FoundModel("Qwen3.6-35B-A3B", window=window)])
    return capacity(known, address, served, **found)


def test_a_hybrid_is_counted_in_blocks_and_each_sequence_pays_for_its_states() -> None:
    found = hybrid(pool_tokens=567_978, block=2096, pool=LOGGED)
    assert (found.pool_tokens, found.block) == (299 * 2096, 2096)
    assert found.charge == Charge(6 * 2096, 0.0, 6 * 2096)
    assert dict(found.sources)["charge"] == "engine and arithmetic"
    assert (found.sequences(131_072), found.sequences(1000)) == (4, 299 // 7)


def test_what_an_engine_charges_a_full_request_counts_where_nobody_knows_the_model() -> None:
    known, address = pair("engine: vllm, device: rtx-3090")
    served = serving(known, address, [FoundModel("a-hybrid-of-ours", window=131_072)])
    found = capacity(known, address, served, pool_tokens=567_978, block=2096, pool=LOGGED)
    assert found.charge == Charge(6 * 2096, 0.0, 6 * 2096)
    assert dict(found.sources)["charge"] == "engine"
    assert found.sequences(1000) == 299 // 7


def test_a_layout_that_the_engine_contradicts_is_not_used() -> None:
    # Blocks of 784 tokens: this engine has 16-bit KV, whatever the file says.
    other = EnginePool(blocks=500, concurrency=500 / (168 + 6))
    found = hybrid(pool_tokens=1, block=784, pool=other)
    assert (found.block, found.pool_tokens, found.charge.most) == (784, 500 * 784, 6 * 784)
    assert dict(found.sources)["charge"] == "engine"


def test_a_hybrid_by_arithmetic_pays_for_states_too() -> None:
    found = hybrid(window=131_072)
    assert (found.block, dict(found.sources)["block"]) == (2096, "arithmetic")
    assert found.charge.fixed == 6 * 2096
    assert found.pool_tokens % 2096 == 0
    assert found.pool_tokens == found.pool_bytes // (10 * 2_146_304) * 2096


def test_windows_are_kept_free_for_one_prefill_and_charged_to_each() -> None:
    known, address = pair("engine: vllm, device: h100, models: [{id: gpt-oss-20b, context: 131072}]")
    served = serving(known, address, [FoundModel("gpt-oss-20b", window=131_072)])
    # What a full request needs: its own blocks, and a window with 8192 tokens in flight.
    need = 8192 + (127 + 8192 + 15) // 16 + 1
    told = EnginePool(blocks=50_000, concurrency=50_000 / need)
    found = capacity(known, address, served, pool_tokens=1, block=16, pool=told)
    assert (found.charge.fixed, found.charge.rate, found.charge.most) == (16, 1.0, 9 * 16)
    assert found.pool_tokens == (50_000 - 512) * 16
    assert found.sequences(131_072) == 6


def test_data_parallel_engines_each_keep_room_for_a_prefill() -> None:
    known, address = pair(
        "engine: vllm, device: h100, devices: {count: 2, tensor_parallel: 1}, models: [{id: gpt-oss-20b}]"
    )
    served = serving(known, address, [FoundModel("gpt-oss-20b", window=131_072)])
    told = EnginePool(blocks=100_000, groups=2)
    assert capacity(known, address, served, pool_tokens=1, block=16, pool=told).pool_tokens == (100_000 - 1024) * 16


def test_an_engine_with_blocks_of_its_own_size_but_no_word_on_them_counts_its_tokens() -> None:
    found = hybrid(pool_tokens=400_000)
    assert (found.pool_tokens, found.block) == (400_000, 2096)
    assert found.charge.most == 6 * 2096


def test_ollama_gives_each_slot_a_whole_window() -> None:
    known, address = pair("engine: ollama, device: rtx-3090, running: 3, models: [{id: Qwen3-8B, context: 16384}]")
    served = serving(known, address)
    assert capacity(known, address, served).pool_tokens == 3 * 16_384
    assert dict(capacity(known, address, served).sources)["pool"] == "windows times slots"
    told = capacity(known, address, served, pool=EnginePool(slot_tokens=32_768))
    assert (told.pool_tokens, dict(told.sources)["pool"]) == (3 * 32_768, "engine")
    # A model that isn't loaded has a window of its own.
    shorter = capacity(known, address, served, pool=EnginePool(slot_tokens=4096))
    assert shorter.pool_tokens == 3 * 16_384


@pytest.mark.parametrize(("window", "pool"), [(4096, 4 * 4096), (52_000, 52_000), (131_072, 131_072)])
def test_what_four_slots_of_llama_cpp_may_have_together_is_what_fits_the_device_better(window: int, pool: int) -> None:
    """About 37,000 tokens fit beside the weights: four slots of 52,000 tokens must share one cache."""
    fields = "engine: llama.cpp, device: rtx-3090, models: [{id: Qwen3-30B-A3B, weights: q4_k_m}]"
    assert 30_000 < held(fields).pool_tokens < 45_000
    said = EnginePool(slot_tokens=window)
    assert held(fields, slots=4, pool_tokens=4 * window, pool=said).pool_tokens == pool
    # Where nothing is known of the device, its word stands.
    stranger = "engine: llama.cpp, models: [{id: Qwen3-30B-A3B, weights: q4_k_m}]"
    assert held(stranger, slots=4, pool_tokens=4 * window, pool=said).pool_tokens == 4 * window


def test_figures_of_low_confidence_fill_three_quarters_of_a_pool_and_say_so() -> None:
    sure = held("engine: vllm, device: h200, models: [{id: Mistral-Small-3.2-24B, weights: fp8}]")
    fields = "engine: vllm, device: h200, models: [{id: Devstral-2-123B, weights: fp8}]"
    doubtful = held(fields)
    assert dict(sure.sources)["pool"] == "device memory less weights"
    assert dict(doubtful.sources)["pool"] == "device memory less weights, 75% of it: figures of low confidence"
    left = kv_pool_bytes(pair(fields)[0], doubtful.weights_bytes)
    assert doubtful.pool_bytes == int(left * 0.75)
    # An engine's own tokens need no such figures.
    told = held(fields, pool_tokens=500_000)
    assert (told.pool_tokens, dict(told.sources)["pool"]) == (500_000, "engine")


def test_the_engines_share_of_memory_counts_more_than_the_usual_one() -> None:
    fields = f"engine: vllm, device: rtx-3090, {MODEL}"
    more = held(fields, pool=EnginePool(memory_share=0.95)).pool_bytes - held(fields).pool_bytes
    assert more == pytest.approx(24 * GIB * 0.05, rel=0.001)
    flat = held(f"engine: sglang, device: rtx-3090, {MODEL}", pool=EnginePool(memory_share=0.8))
    assert flat.pool_bytes == pytest.approx(24 * GIB * 0.8 - 8.19e9, rel=0.001)
