"""Splits and cache formats that engines refuse at start."""

from __future__ import annotations

import pytest

from gateway.config.catalog import known_model
from gateway.core.kv.engine_limits import refused_format, refused_split, splits
from gateway.core.kv.grouped import FullGqa
from gateway.core.kv.hf_config.reader import model_from_config
from gateway.core.kv.model import ModelShape
from tests.core.config_families import plain


def test_heads_are_split_whole_or_copied() -> None:
    model = ModelShape("m", (FullGqa(32, 8, 128),), query_heads=32, depth=32)
    assert [tp for tp in range(1, 65) if splits(model, tp)] == [1, 2, 4, 8, 16, 32]
    ten = ModelShape("m", (FullGqa(40, 10, 128),), query_heads=40)
    assert [tp for tp in range(1, 65) if splits(ten, tp)] == [1, 2, 5, 10, 20, 40]
    unknown = ModelShape("m", (FullGqa(32, 8, 128),))
    assert splits(unknown, 64)
    assert not splits(unknown, 12)


def test_states_are_split_by_their_heads() -> None:
    model = known_model("Qwen3.6-27B")
    assert model is not None
    assert [tp for tp in range(1, 9) if splits(model, tp)] == [1, 2, 4, 8]


def test_what_works_is_named() -> None:
    model = model_from_config(plain("llama", 32, 4096, 32, 8, 14336, 128256)).shape
    assert model.query_heads == 32
    assert refused_split(model, "vllm", 3) == (
        "vllm can't split its heads over 3 devices; tensor parallel works with 1, 2, 4, 8, 16, 32"
    )
    assert refused_split(model, "sglang", 1, 33) == "sglang can't cut 32 layers into 33 stages; at most 32 work"
    assert refused_split(model, "vllm", 8, 32) == ""
    assert refused_split(model, "llama.cpp", 3) == ""


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("name", ["q8_0", "Q4_0", "iq4_nl"])
def test_formats_of_ggml_are_llama_cpps(engine: str, name: str) -> None:
    assert refused_format(engine, name) == f"{engine} has no KV cache in {name}; auto (16 bit) and fp8 work"
    assert refused_format("llama.cpp", name) == ""


def test_formats_of_eight_bit_floats_are_not() -> None:
    assert "ollama has no KV cache in fp8_e5m2" in refused_format("ollama", "fp8_e5m2")
    assert [refused_format("vllm", name) for name in ("auto", "fp8", "nvfp4", "bf16")] == [""] * 4
    assert refused_format("openai", "q4_0") == ""
