"""Published config.json files of every family against the catalogue, hand counts, and each other's contradictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.config.catalog import known_model
from gateway.core.kv.described import ModelFileError
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.hf_config.reader import model_from_config
from tests.core.config_families import FAMILIES, GEMMA_3, Family, plain

RECORDED = sorted((Path(__file__).parents[1] / "recordings" / "model_configs").glob("*.json"))
NOT_IN_CATALOGUE = {"Qwen3-VL-30B-A3B", "Meta-Llama-3.1-70B", "Mixtral-8x7B-v0.1", "Nemotron-H-56B-Base-8K",
                    "NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16"}  # fmt: skip
PUBLISHED = {"Qwen3-VL-30B-A3B": 30.5, "Meta-Llama-3.1-70B": 70.55, "Mixtral-8x7B-v0.1": 46.7,
             "Nemotron-H-56B-Base-8K": 56.3, "NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": 550.0}  # fmt: skip


def recorded(name: str) -> dict[str, Any]:
    path = Path(__file__).parents[1] / "recordings" / "model_configs" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def test_most_recordings_have_a_catalogue_entry() -> None:
    assert len(RECORDED) > 40
    assert {path.stem for path in RECORDED if known_model(path.stem) is None} == NOT_IN_CATALOGUE


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_config_caches_what_the_catalogue_says(path: Path) -> None:
    found = model_from_config(json.loads(path.read_text("utf-8")))
    known = known_model(path.stem)
    if known is None:
        assert found.shape.params_total == pytest.approx(PUBLISHED[path.stem] * 1e9, rel=0.02)
        assert found.shape.kv().bytes(8192) > 0
        return
    for dtype in (KvDtype.F16, KvDtype.FP8, KvDtype.Q8_0):
        for tp in (1, 4, 8):
            assert found.shape.kv(dtype, tp) == known.kv(dtype, tp)
    assert found.shape.depth == known.depth
    if known.params_total:
        assert found.shape.params_total == pytest.approx(known.params_total, rel=0.02)
        assert found.shape.read_params == pytest.approx(known.read_params, rel=0.11)
    if known.experts:
        assert (found.shape.experts, found.shape.experts_per_token) == (known.experts, known.experts_per_token)
    assert not any("not a known kind" in caveat for caveat in found.caveats)


@pytest.mark.parametrize("name", [path.stem for path in RECORDED if known_model(path.stem) is not None])
def test_context_is_the_catalogues(name: str) -> None:
    differs = {"Kimi-K2.5": 262144}  # the entry is K2's, which K2.5 doubles
    known = known_model(name)
    assert known is not None
    assert model_from_config(recorded(name)).shape.max_context == differs.get(name, known.max_context)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
def test_other_families(family: Family) -> None:
    found = model_from_config(family.config).shape
    kv = found.kv()
    assert kv.bytes_per_token == family.token
    assert (kv.window_bytes_per_token, kv.window) == family.window
    assert kv.state_bytes == family.state
    if family.billions:
        assert found.params_total == pytest.approx(family.billions * 1e9, rel=family.within)


@pytest.mark.parametrize(
    ("config", "depth"),
    [
        (plain("bert", 12, 768, 12, None, 3072, 30522), 12),
        (plain("xlm-roberta", 24, 1024, 16, None, 4096, 250002), 24),
        (plain("modernbert", 22, 768, 12, None, 1152, 50368, local_attention=128), 22),
        (plain("gemma3_text", 24, 768, 3, 1, 1152, 262144, use_bidirectional_attention=True), 24),
        (plain("llama", 16, 2048, 32, 8, 8192, 128256, is_causal=False), 16),
    ],
)
def test_encoders_keep_nothing(config: dict[str, Any], depth: int) -> None:
    found = model_from_config(config).shape
    assert not found.keeps_kv
    assert found.depth == depth


def test_bidirectional_vision_is_no_encoder() -> None:
    assert model_from_config(recorded("gemma-4-26B-A4B")).shape.keeps_kv


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": None}, "num_hidden_layers is missing"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
        ({"num_hidden_layers": "many"}, "num_hidden_layers must be a whole number, not 'many'"),
        ({"num_hidden_layers": True}, "num_hidden_layers must be a whole number"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"num_attention_heads": None}, "num_attention_heads is missing"),
        ({"num_attention_heads": 33}, "head_dim is missing, and hidden_size 4096 is no multiple of 33"),
        ({"num_key_value_heads": [8, 8]}, "num_key_value_heads must list a whole number for each of 32 layers"),
        ({"num_key_value_heads": -8}, "num_key_value_heads must be a whole number"),
        ({"layer_types": ["full_attention"]}, "layer_types has 1 layers, but num_hidden_layers is 32"),
        ({"layer_types": ["quadratic"] * 32}, "layer_types names a kind of layer that is not known: 'quadratic'"),
        ({"layer_types": "full"}, "layer_types must be a list"),
        ({"layer_types": ["sliding_attention"] * 32}, "sliding_window is missing"),
        ({"layer_types": ["chunked_attention"] * 32}, "attention_chunk_size is missing"),
        ({"layer_types": ["linear_attention"] * 32}, "linear_num_value_heads is missing"),
        ({"layer_types": ["mamba"] * 32}, "ssm_state_size is missing"),
        ({"layer_types": ["conv"] * 32}, "conv_L_cache is missing"),
        ({"kv_lora_rank": 512}, "qk_rope_head_dim is missing"),
        ({"num_kv_shared_layers": 32}, "num_kv_shared_layers is 32, but num_hidden_layers is 32"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder is true"),
        ({"compress_ratios": [4] * 32, "head_dim": 512}, "index_head_dim is missing"),
        (
            {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_topk": 9, "index_head_dim": 128,
             "indexer_types": ["full"]},
            "indexer_types has 1 layers",
        ),
        ({"block_configs": [{}] * 32}, r"block_configs\[0\].attention is missing"),
        ({"block_configs": [{}]}, "block_configs has 1 layers"),
    ],
)  # fmt: skip
def test_what_is_missing_or_contradicts_is_named(change: dict[str, Any], message: str) -> None:
    config = {**plain("llama", 32, 4096, 32, 8, 14336, 128256), **change}
    with pytest.raises(ModelFileError, match=message):
        model_from_config({key: value for key, value in config.items() if value is not None})


def test_states_whose_number_format_is_the_engines_choice_say_so() -> None:
    assert "counted in fp32" in model_from_config(recorded("Nemotron-H-56B-Base-8K")).caveats[0]
    for name in ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "Qwen3.5-27B", "Kimi-K3", "Qwen3-8B"):
        assert model_from_config(recorded(name)).caveats == ()


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(ModelFileError, match="one JSON object"):
        model_from_config([])  # type: ignore[arg-type]


def test_an_unknown_kind_is_read_as_full_attention_and_says_so() -> None:
    found = model_from_config(plain("novel_lm", 32, 4096, 32, 8, 14336, 128256))
    assert found.shape.kv().bytes_per_token == 131072
    assert found.caveats == ("novel_lm is not a known kind: read as its keys suggest",)
    nameless = plain("", 32, 4096, 32, 8, 14336, 128256)
    assert "without model_type" in model_from_config(nameless).caveats[0]


@pytest.mark.parametrize(
    ("name", "format_", "gib", "kv"),
    [
        ("Qwen3-8B", "bf16", 15.3, None),
        ("Qwen3-32B-FP8", "fp8", 32.0, None),
        ("GLM-5.1-NVFP4", "nvfp4", 392.3, KvDtype.FP8),
        ("gpt-oss-20b", "mxfp4", 12.8, None),
        ("gpt-oss-120b", "mxfp4", 60.7, None),
        ("DeepSeek-V4-Flash", "fp8", 144.5, None),
        ("Kimi-K2.5", "int4", 511.0, None),
        ("Qwen3.6-27B-NVFP4", "mixed", 0.0, KvDtype.FP8),
    ],
)
def test_weights_by_number_format(name: str, format_: str, gib: float, kv: KvDtype | None) -> None:
    found = model_from_config(recorded(name))
    assert (found.weights_format, found.kv_dtype) == (format_, kv)
    assert found.weights_bytes / 2**30 == pytest.approx(gib, rel=0.01)
    assert not found.weights_exact


def packed(bits: int, kind: str) -> dict[str, Any]:
    return {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": bits, "type": kind}}}}


@pytest.mark.parametrize(
    ("stated", "format_"),
    [
        ({"quant_method": "awq", "bits": 4}, "awq"),
        ({"quant_method": "gptq", "bits": 4}, "gptq"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        (packed(8, "int"), "int8"),
        (packed(8, "float"), "fp8"),
        (packed(4, "int"), "int4"),
        ({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"}, "awq"),
        ({}, "bf16"),
    ],
)  # fmt: skip
def test_quantisers(stated: dict[str, Any], format_: str) -> None:
    config = {**plain("llama", 32, 4096, 32, 8, 14336, 128256), "quantization_config": stated}
    assert model_from_config(config).weights_format == format_


@pytest.mark.parametrize(
    ("scaling", "tokens"),
    [
        (None, 8192),
        ({"type": "linear", "factor": 4.0}, 32768),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}, 16384),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 4096}, 8192),
        ({"type": "longrope", "original_max_position_embeddings": 4096}, 8192),
        ({"rope_type": "dynamic", "factor": 2.0}, 16384),
    ],
)
def test_scaled_contexts(scaling: dict[str, Any] | None, tokens: int) -> None:
    config = {**plain("llama", 32, 4096, 32, 8, 14336, 128256), "max_position_embeddings": 8192}
    assert model_from_config({**config, "rope_scaling": scaling}).shape.max_context == tokens


def test_keys_around_a_nested_model_count_where_it_is_silent() -> None:
    nested = {key: value for key, value in GEMMA_3.items() if key != "vocab_size"}
    found = model_from_config({"text_config": nested, "vocab_size": 1000, "hidden_size": 1})
    assert (found.shape.vocab, found.shape.hidden) == (1000, 5376)
