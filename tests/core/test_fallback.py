from __future__ import annotations

import pytest

from gateway.core.fallback import same_weights, tiers
from gateway.core.plan import Route
from gateway.core.request import Consent
from tests.core.fleet import request


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Qwen3.6-27B", "Qwen/Qwen3.6-27B-FP8"),
        ("Qwen3.6-27B", "Qwen3.6-27B-AWQ"),
        ("Qwen3.6-27B-GPTQ-Int4", "Qwen3.6-27B-NVFP4"),
        ("unsloth/Qwen3-30B-A3B-GGUF:UD-Q4_K_XL", "Qwen3-30B-A3B"),
        ("llama-3.1-8b-instruct-Q4_K_M", "Llama-3.1-8B-Instruct-Q8_0"),
        ("Llama-3.1-8B-Instruct-IQ3_XXS", "Llama-3.1-8B-Instruct"),
        ("mlx-community/Qwen3-8B-4bit", "Qwen3-8B-MLX-8bit"),
        ("gemma-3-27b-it-quantized.w4a16", "gemma-3-27b-it"),
    ],
)
def test_names_that_differ_in_quantisation_only(one: str, other: str) -> None:
    assert same_weights(one, other)
    assert same_weights(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Qwen3.6-27B", "Qwen3.6-35B-A3B"),
        ("Qwen3-8B", "Qwen3-8B-Base"),
        ("gpt-oss-20b", "gpt-oss-120b"),
        ("Llama-3.1-8B", "Llama-3.1-8B-Instruct"),
        ("q4", "q8"),
    ],
)
def test_names_of_different_weights(one: str, other: str) -> None:
    assert not same_weights(one, other)


ROUTE = Route("code", "Big", ("Small", "Big-FP8"))


@pytest.mark.parametrize(
    ("consent", "models"),
    [
        (Consent.NONE, ("Big",)),
        (Consent.QUANT, ("Big", "Big-FP8")),
        (Consent.ANY, ("Big", "Small", "Big-FP8")),
    ],
)
def test_consent_decides_who_may_answer(consent: Consent, models: tuple[str, ...]) -> None:
    assert tiers(ROUTE, request(consent=consent)) == models
    narrowed = Route("code", "Big", ("Small", "Big-FP8"), consent=consent)
    assert tiers(narrowed, request(consent=Consent.ANY)) == models


def test_a_caller_may_name_who_may_stand_in_of_those_that_the_operator_declares() -> None:
    route = Route("m", "m", fallback=("m-fp8", "n", "o"))
    assert tiers(route, request(allowed=frozenset({"o", "n", "elsewhere"}))) == ("m", "n", "o")
    assert tiers(route, request(allowed=frozenset())) == ("m",)
    assert tiers(route, request(allowed=frozenset({"n"}), consent=Consent.NONE)) == ("m",)
    narrow = Route("m", "m", fallback=("m-fp8", "n"), consent=Consent.QUANT)
    assert tiers(narrow, request(allowed=frozenset({"m-fp8", "n"}))) == ("m", "m-fp8")
