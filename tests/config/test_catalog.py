"""The shipped figures: every entry usable, names found as people write them."""

from __future__ import annotations

import pytest

from gateway.config import catalog
from gateway.config.catalog.names import plain_name, weights_in_name
from gateway.core.kv.dtype import KvDtype


@pytest.mark.parametrize("name", catalog.device_ids())
def test_every_device_is_usable(name: str) -> None:
    device = catalog.device(name)
    assert device is not None
    assert device.known
    assert 50e9 < device.bandwidth < 10e12
    assert 1e12 < device.flops < 3e15
    assert 0.1 <= device.mfu <= 1
    assert 0.5 <= device.budget <= 1
    assert device.memory == 0 if device.id.startswith("cpu") else device.memory > 10e9


@pytest.mark.parametrize("name", catalog.model_ids())
def test_every_model_is_usable_and_found_by_its_own_id(name: str) -> None:
    shape = catalog.known_model(name)
    assert shape is not None
    assert shape.id == name
    if shape.kv_known and shape.keeps_kv:
        assert 0 < shape.kv(KvDtype.FP8).bytes(1000) < shape.kv(KvDtype.F16).bytes(1000) < 10 * 1024**3


def test_a_known_pair_of_figures() -> None:
    spark, qwen = catalog.device("dgx-spark"), catalog.known_model("Qwen3.6-27B")
    assert spark is not None
    assert qwen is not None
    assert (spark.memory, spark.bandwidth, spark.budget) == (128_000_000_000, 273e9, 0.80)
    assert qwen.kv(KvDtype.F16).bytes_per_token == 65536
    assert qwen.kv(KvDtype.F16).state_bytes == 153_944_064


@pytest.mark.parametrize(
    ("written", "found", "weights"),
    [
        ("Qwen/Qwen3.6-27B-FP8", "Qwen3.6-27B", "fp8"),
        ("qwen3.6-27b", "Qwen3.6-27B", None),
        ("Qwen3.6-35B-A3B-UD-Q4_K_XL.gguf", "Qwen3.6-35B-A3B", "q4_k_m"),
        ("/models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "Llama-3.1-8B", "q4_k_m"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B", None),
        ("unsloth/gpt-oss-20b-GGUF:Q8_0", "gpt-oss-20b", "q8_0"),
        ("gpt-oss:20b", "gpt-oss-20b", None),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "Nemotron-3-Nano-30B-A3B", "bf16"),
        ("google/gemma-3-27b-it", "Gemma-3-27B", None),
        ("cyankiwi/Qwen3.6-27B-AWQ-4bit", "Qwen3.6-27B", "awq"),
        ("nvidia/Qwen3.6-27B-NVFP4", "Qwen3.6-27B", "nvfp4"),
        ("SmolLM2-135M-Instruct.Q8_0.gguf", "SmolLM2-135M", "q8_0"),
        ("Qwen3-Coder-30B-A3B-Instruct-FP8", "Qwen3-30B-A3B", "fp8"),
        ("qwen3.6-270b", None, None),
        ("Qwen3.6", None, None),
        ("", None, None),
    ],
)
def test_names_as_engines_write_them(written: str, found: str | None, weights: str | None) -> None:
    shape = catalog.known_model(written)
    assert (shape.id if shape else None) == found
    assert weights_in_name(written) == weights


def test_a_size_is_never_taken_for_packaging() -> None:
    for name in catalog.model_ids():
        sizes = [word for word in name.casefold().replace("_", "-").split("-") if word[:-1].replace(".", "").isdigit()]
        assert all(size in plain_name(name) for size in sizes)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3090", "rtx-3090"),
        ("rtx3090", "rtx-3090"),
        ("spark", "dgx-spark"),
        ("H200", "h200"),
        ("RTX 4090", "rtx-4090"),
        ("q", None),
    ],
)
def test_the_nearest_device(written: str, meant: str | None) -> None:
    assert catalog.nearest_device(written) == meant


def test_short_names_lead_to_the_device() -> None:
    assert catalog.device("rtx-pro-6000") == catalog.device("rtx-pro-6000-ws")
    assert catalog.device("h100") == catalog.device("h100-sxm-80")
    assert catalog.device("abacus") is None
