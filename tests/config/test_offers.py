"""Declared facts win, then the engine's, then the catalogue's; each says where it came from."""

from __future__ import annotations

from gateway.config.catalog import known_model
from gateway.config.offers import ASSUMED_KV, ASSUMED_WINDOW, CAUTIOUS_WINDOW, Detected, merge_offers, serving
from gateway.core.kv.shape import KvShape
from gateway.engines.adapter import FoundModel
from tests.config.fleet import pair

VLLM = "engine: vllm, device: rtx-pro-6000"


def offer_source(name: str) -> str:
    shape = known_model(name)
    assert shape is not None
    return shape.source


def one(fields: str, *found: FoundModel, abilities: frozenset[str] = frozenset()):
    (offer,) = merge_offers(*pair(fields), found, Detected(abilities))
    return offer


def test_a_declared_model_without_an_engine_comes_from_the_catalogue() -> None:
    offer = one(f"{VLLM}, models: [{{id: Qwen3.6-27B, weights: fp8, kv: fp8, context: 262144}}]")
    assert (offer.model, offer.served_as, offer.window) == ("Qwen3.6-27B", "Qwen3.6-27B", 262_144)
    assert offer.kv == KvShape(bytes_per_token=32768.0, state_bytes=153_944_064)
    assert dict(offer.sources) == {
        "model": "catalogue",
        "confidence": "high",
        "figures": offer_source("Qwen3.6-27B"),
        "params": "catalogue",
        "kv": "catalogue",
        "kv_format": "declared",
        "weights": "declared",
        "window": "declared",
    }


def test_a_discovered_model_needs_no_declaration() -> None:
    found = FoundModel("Qwen/Qwen3.6-27B-FP8", aliases=("code",), window=131_072)
    offer = one(VLLM, found)
    assert (offer.model, offer.served_as, offer.window) == ("Qwen3.6-27B", "Qwen/Qwen3.6-27B-FP8", 131_072)
    assert offer.answers_to("code")
    assert offer.answers_to("Qwen3.6-27B")
    assert offer.answers_to("Qwen/Qwen3.6-27B-FP8")
    assert dict(offer.sources)["window"] == "engine"
    assert dict(offer.sources)["weights"] == "name"


def test_the_smaller_window_of_file_and_engine_counts() -> None:
    declared = f"{VLLM}, models: [{{id: Qwen3.6-27B, context: 65536}}]"
    assert one(declared, FoundModel("Qwen3.6-27B", window=32_768)).window == 32_768
    assert one(declared, FoundModel("Qwen3.6-27B", window=131_072)).window == 65_536


def test_a_catalogue_window_is_believed_only_cautiously() -> None:
    offer = one(f"{VLLM}, models: [Qwen3.6-27B]")
    assert offer.window == CAUTIOUS_WINDOW
    assert dict(offer.sources)["window"] == "catalogue"
    assert one(f"{VLLM}, models: [bge-m3]").window == 8192


def test_a_model_that_nobody_knows_gets_stated_assumptions() -> None:
    offer = one(VLLM, FoundModel("my-own-model"))
    assert (offer.kv, offer.window) == (ASSUMED_KV, ASSUMED_WINDOW)
    assert set(dict(offer.sources).values()) == {"assumed"}
    assert offer.speed.step_seconds(1) > 0


def test_an_engine_tells_of_an_unknown_model_what_it_can() -> None:
    found = FoundModel("mine", window=8192, params=135_000_000, size_bytes=143_000_000, kv_bytes_per_token=46_080.0)
    offer = one("engine: llama.cpp, device: rtx-3090", found)
    assert offer.kv == KvShape(bytes_per_token=46_080.0)
    assert dict(offer.sources) == {
        "model": "assumed",
        "params": "engine",
        "kv": "engine",
        "weights": "engine",
        "window": "engine",
    }
    assert offer.speed.step_seconds(1) < 0.01


def test_declared_bytes_and_parameters_overrule_the_catalogue() -> None:
    offer = one(f"{VLLM}, models: [{{id: Qwen3.6-27B, kv_bytes: 10KiB, params: 3B, weights: int8}}]")
    (serves,) = serving(*pair(f"{VLLM}, models: [{{id: Qwen3.6-27B, kv_bytes: 10KiB, params: 3B, weights: int8}}]"))
    assert offer.kv == KvShape(bytes_per_token=10_240.0)
    assert (dict(offer.sources)["kv"], dict(offer.sources)["params"]) == ("declared", "declared")
    assert serves.weights_bytes == 3_000_000_000


def test_a_declared_model_is_found_under_the_engines_own_spelling() -> None:
    declared = f"{VLLM}, models: [Qwen3.6-27B]"
    offer = one(declared, FoundModel("Qwen/Qwen3.6-27B-FP8"), FoundModel("other"))
    assert (offer.model, offer.served_as) == ("Qwen3.6-27B", "Qwen/Qwen3.6-27B-FP8")


def test_a_single_model_of_a_single_model_engine_is_the_declared_one() -> None:
    offer = one("engine: llama.cpp, device: rtx-3090, models: [code]", FoundModel("/models/q.gguf"))
    assert (offer.model, offer.served_as) == ("code", "/models/q.gguf")


def test_what_the_engine_does_not_list_is_not_offered() -> None:
    known, address = pair(f"{VLLM}, models: [Qwen3.6-27B, gpt-oss-20b]")
    assert [o.model for o in merge_offers(known, address, [FoundModel("gpt-oss-20b")])] == ["gpt-oss-20b"]
    assert [o.model for o in merge_offers(known, address)] == ["Qwen3.6-27B", "gpt-oss-20b"]
    named = pair(f"{VLLM}, models: [{{id: a, served_as: x}}, {{id: b, served_as: y}}]")
    assert merge_offers(*named, [FoundModel("z")]) == ()


def test_declared_abilities_overrule_detected_ones() -> None:
    offer = one(
        f"{VLLM}, models: [a], abilities: {{tools: true, vision: false}}", abilities=frozenset({"vision", "audio"})
    )
    assert offer.abilities == {"tools", "audio"}


def test_tensor_parallel_copies_are_counted() -> None:
    offer = one("engine: vllm, device: h100, devices: {count: 8, tensor_parallel: 8}, models: [Qwen3-235B-A22B]")
    assert offer.kv.bytes_per_token == 94 * 8 * 256 * 2
