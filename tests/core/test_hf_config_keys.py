"""Keys that say less than they seem to: zeros, names of one family's own, lists where others have a number."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.hf_config.reader import model_from_config
from tests.core.config_families import every, plain

DEEPSEEK_OCR = plain(
    "deepseek_v2", 12, 1280, 10, 10, 6848, 129280, use_mla=False, kv_lora_rank=None, q_lora_rank=None,
    qk_nope_head_dim=0, qk_rope_head_dim=0, v_head_dim=0, n_routed_experts=64, n_shared_experts=2,
    num_experts_per_tok=6, moe_intermediate_size=896, first_k_dense_replace=1,
)  # fmt: skip
STEP_35 = plain(
    "step3p5", 45, 4096, 64, None, 11264, 128896, num_attention_groups=8, head_dim=128, sliding_window=512,
    layer_types=["sliding_attention" if layer % 4 else "full_attention" for layer in range(48)],
    attention_other_setting={"attention_type": "sliding_attention", "num_attention_heads": 96,
                             "num_attention_groups": 8, "head_dim": 128},
    moe_num_experts=288, moe_top_k=8, moe_intermediate_size=1280, share_expert_dim=1280,
    moe_layers_enum=",".join(map(str, range(3, 45))),
)  # fmt: skip
STEP_3 = plain(
    "step3_text", 61, 7168, 64, None, 18432, 128815, num_attention_groups=1, head_dim=256, share_q_dim=2048,
    moe_num_experts=48, moe_top_k=3, moe_intermediate_size=5120, share_expert_dim=5120,
)  # fmt: skip


def test_a_value_size_of_zero_is_the_keys_size() -> None:
    found = model_from_config({"model_type": "deepseek_vl_v2", "language_config": DEEPSEEK_OCR}).shape
    assert found.kv().bytes_per_token == 12 * 10 * (128 + 128) * 2
    assert found.params_total == pytest.approx(2.9e9, rel=0.03)


@pytest.mark.parametrize("key", ["head_dim", "v_head_dim", "attention_head_dim", "kv_channels", "global_head_dim"])
@pytest.mark.parametrize("nothing", [0, None])
def test_a_size_of_zero_or_null_is_as_good_as_none(key: str, nothing: int | None) -> None:
    config = plain("llama", 32, 4096, 32, 8, 14336, 128256)
    assert model_from_config({**config, key: nothing}).shape == model_from_config(config).shape


@pytest.mark.parametrize("key", ["swa_head_dim", "swa_v_head_dim", "v_head_dim", "swa_num_key_value_heads"])
def test_so_it_is_in_layers_with_a_window(key: str) -> None:
    config = plain("gemma2", 4, 3584, 16, 8, 14336, 256000, sliding_window=4096, layer_types=every(4, 2))
    assert model_from_config({**config, key: 0}).shape == model_from_config(config).shape


def test_latent_attention_that_is_switched_off() -> None:
    config = plain("deepseek_v2", 12, 1280, 10, 10, 6848, 129280, use_mla=False, kv_lora_rank=512, qk_rope_head_dim=64)
    assert model_from_config(config).shape.kv().bytes_per_token == 12 * 10 * (128 + 128) * 2


def test_attention_groups_are_kv_heads() -> None:
    found = model_from_config(STEP_35).shape
    kv = found.kv()
    assert (kv.bytes_per_token, kv.window_bytes_per_token, kv.window) == (12 * 8 * 512, 33 * 8 * 512, 512)
    assert found.params_total == pytest.approx(196e9, rel=0.01)
    nested = model_from_config({"model_type": "step3_vl", "text_config": STEP_3}).shape
    assert nested.kv().bytes_per_token == 61 * 1 * (256 + 256) * 2
    assert nested.params_total == pytest.approx(316e9, rel=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_key_value_heads": 0}, "num_key_value_heads must be at least 1"),
        ({"num_key_value_heads": 64}, "64 KV heads are more than the 32 query heads"),
        ({"num_attention_heads": 0}, "num_attention_heads must be at least 1"),
    ],
)
def test_heads_that_no_model_has(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        model_from_config({**plain("llama", 32, 4096, 32, 8, 14336, 128256), **change})


def test_a_width_for_each_layer() -> None:
    alike = plain("gemma3n_text", 30, 2048, 8, 2, 8192, 262400, layer_types=every(30, 5), num_kv_shared_layers=10)
    listed = model_from_config({**alike, "intermediate_size": [8192] * 30}).shape
    assert listed == model_from_config(alike).shape
    assert listed.kv().bytes_per_token == 4 * 2 * 512 * 2
    wider = model_from_config({**alike, "intermediate_size": [8192] * 29 + [16384]}).shape
    assert wider.params_total - listed.params_total == 3 * 2048 * 8192
    with pytest.raises(ModelFileError, match="intermediate_size must list a whole number for each of 30 layers"):
        model_from_config({**alike, "intermediate_size": [8192]})
