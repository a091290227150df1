"""An engine's own figures beside those of file and arithmetic: what differs, by how much, and what may be behind it."""

from __future__ import annotations

import pytest

from gateway.config.comparing import Told, mismatches
from gateway.config.mismatch import Mismatch, worst
from gateway.config.offers import Detected, serving
from gateway.core.kv.engine_pool import EnginePool
from gateway.engines.adapter import FoundModel
from tests.config.fleet import pair

QWEN = "engine: vllm, device: rtx-3090, models: [{id: Qwen3-8B, weights: fp8, kv: fp8, context: 32768}]"
EXPECTED = 174_352
"""Tokens that a 3090 holds beside those weights."""


def compared(fields: str, told: Told, *found: FoundModel) -> dict[tuple[str, str], Mismatch]:
    known, address = pair(fields)
    served = serving(known, address, found, Detected(kv_dtype=told.pool.dtype))
    return {(one.fact, one.unit): one for one in mismatches(known, address, served, told)}


def test_nothing_is_compared_with_an_engine_that_says_nothing() -> None:
    assert compared(QWEN, Told()) == {}
    assert worst(()) is None


@pytest.mark.parametrize(("tokens", "large"), [(EXPECTED, False), (160_000, False), (150_000, True), (200_000, True)])
def test_a_pool_is_compared_with_what_memory_leaves(tokens: int, large: bool) -> None:
    one = compared(QWEN, Told(pool_tokens=tokens, block=16), FoundModel("Qwen3-8B", window=32_768))[
        ("KV pool", "tokens")
    ]
    assert (one.told, one.expected, one.by, one.is_large) == (tokens, EXPECTED, "arithmetic", large)
    assert one.ratio == pytest.approx(tokens / EXPECTED - 1)


def test_a_smaller_pool_has_other_causes_than_a_larger_one() -> None:
    fields = "engine: vllm, device: rtx-pro-6000, models: [Qwen3-8B]"
    less = compared(fields, Told(pool_tokens=200_000, block=16))[("KV pool", "tokens")]
    assert str(less).startswith("KV pool: 200,000 tokens by the engine, ")
    assert "something else holds memory of that device" in less.causes
    more = compared(fields, Told(pool_tokens=2_000_000, block=16))[("KV pool", "tokens")]
    assert more.causes[0] == "its weights are not bf16, which was assumed (`weights`)"
    assert "its KV cache has fewer than 16 bits an element (`kv`)" in more.causes
    told_share = Told(pool_tokens=200_000, block=16, pool=EnginePool(memory_share=0.9))
    assert not any("share of memory" in cause for cause in compared(fields, told_share)[("KV pool", "tokens")].causes)


def test_a_pool_that_was_asked_for_is_only_compared_upwards() -> None:
    fields = "engine: llama.cpp, device: rtx-3090, models: [{id: Qwen3-8B, weights: q4_k_m}]"
    assert compared(fields, Told(slots=2, pool_tokens=8192, block=1)) == {}
    more = compared(fields, Told(slots=2, pool_tokens=900_000, block=1))[("KV pool", "tokens")]
    assert more.is_large


def test_blocks_betray_another_number_format() -> None:
    fields = "engine: vllm, device: rtx-3090, models: [{id: Qwen3.6-35B-A3B, weights: int4, kv: fp8}]"
    told = Told(pool_tokens=1, block=1056, pool=EnginePool(blocks=300, concurrency=300 / 131))
    found = compared(fields, told, FoundModel("Qwen3.6-35B-A3B", window=131_072))
    assert found[("KV block", "tokens")].ratio == pytest.approx(1056 / 2096 - 1)
    assert "another number format of the KV cache (`kv`)" in found[("KV block", "tokens")].causes


def test_bytes_of_a_block_betray_it_too() -> None:
    pool = EnginePool(blocks=1000, bytes=1000 * 16 * 147_456)
    one = compared(QWEN, Told(pool_tokens=16_000, block=16, pool=pool))[("KV block", "bytes")]
    assert one.ratio == pytest.approx(1.0)


def test_an_engine_that_charges_a_full_request_otherwise_is_believed_and_told_of() -> None:
    fields = "engine: vllm, device: rtx-3090, models: [{id: Qwen3.6-35B-A3B, weights: int4, kv: fp8}]"
    told = Told(pool_tokens=1, block=2096, pool=EnginePool(blocks=299, concurrency=299 / 100))
    found = compared(fields, told, FoundModel("Qwen3.6-35B-A3B", window=131_072))
    assert (
        found[("a request of full length", "blocks")].told,
        found[("a request of full length", "blocks")].expected,
    ) == (
        100,
        69,
    )
    agreed = Told(pool_tokens=1, block=2096, pool=EnginePool(blocks=299, concurrency=299 / 69))
    assert ("a request of full length", "blocks") not in compared(
        fields, agreed, FoundModel("Qwen3.6-35B-A3B", window=131_072)
    )


def test_the_file_is_compared_too() -> None:
    fields = QWEN.replace("models", "kv_pool: 100000 tokens, models")
    told = Told(pool_tokens=EXPECTED, block=16, pool=EnginePool(dtype="bfloat16"))
    found = compared(fields, told, FoundModel("Qwen3-8B", window=16_384))
    window, element = found[("window", "tokens")], found[("KV cache an element", "bytes")]
    assert (window.told, window.expected, window.by) == (16_384, 32_768, "the file")
    assert (element.told, element.expected) == (2.0, 1.0)
    assert "it keeps bfloat16 where the file says `kv: fp8`" in element.causes[0]
    largest = worst(found.values())
    assert largest is not None
    assert largest.ratio == pytest.approx(1.0, rel=0.001)


def test_a_model_that_nobody_knows_is_compared_with_nothing() -> None:
    fields = "engine: vllm, device: rtx-3090, models: [{id: our-own, params: 8B}]"
    assert compared(fields, Told(pool_tokens=50_000, block=16)) == {}
    assert compared(fields.replace("rtx-3090", "{memory: 24GiB}"), Told(pool_tokens=50_000, block=16)) == {}
