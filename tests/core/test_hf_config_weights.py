"""Weights of families that count otherwise than Llama: shared blocks, no gate, one table, a width that holds both."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.core.kv.hf_config.reader import model_from_config
from tests.core.config_families import plain

SHARING = (6, 11, 17, 23, 29, 35, 41, 47, 53, 59, 65, 71, 77)
ZAMBA_2 = plain(
    "zamba2", 81, 3584, 32, 32, 14336, 32000, attention_hidden_size=7168, attention_head_dim=224, mamba_d_state=64,
    mamba_d_conv=4, mamba_expand=2, mamba_ngroups=2, n_mamba_heads=112, mamba_headdim=64, num_mem_blocks=2,
    hybrid_layer_ids=list(SHARING), use_shared_attention_adapter=False, adapter_rank=128,
    layers_block_type=["hybrid" if layer in SHARING else "mamba" for layer in range(81)],
)  # fmt: skip


def test_a_shared_block_is_there_once_and_read_at_each_use() -> None:
    found = model_from_config(ZAMBA_2).shape
    assert found.params_total == pytest.approx(7.36e9, rel=0.01)
    assert found.kv().bytes_per_token == 13 * 32 * 448 * 2
    block = 3 * 7168 * 7168 + 7168 * 3584 + 3 * 3584 * 14336
    assert found.read_params - found.params_total == 11 * block
    single = model_from_config({**ZAMBA_2, "num_mem_blocks": 1}).shape
    assert found.params_total - single.params_total == block
    assert found.read_params == single.read_params


@pytest.mark.parametrize(
    ("config", "billions"),
    [
        (plain("qwen", 32, 4096, 32, None, 22016, 151936, kv_channels=128), 7.72),
        (plain("apertus", 32, 4096, 32, 8, 21504, 131072), 8.05),
        (plain("arcee", 36, 2560, 20, 4, 18432, 128004, head_dim=128), 4.6),
        ({"model_type": "bloom", "n_layer": 24, "num_attention_heads": 16, "n_embed": 1024, "hidden_size": 1024,
          "vocab_size": 250880, "n_inner": None, "seq_length": 2048}, 0.559),
        ({"model_type": "opt", "num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 32,
          "ffn_dim": 8192, "vocab_size": 50272}, 1.31),
        ({"model_type": "mpt", "n_layers": 32, "d_model": 4096, "n_heads": 32, "vocab_size": 50432}, 6.65),
    ],
)  # fmt: skip
def test_weights_as_published(config: dict[str, Any], billions: float) -> None:
    assert model_from_config(config).shape.params_total == pytest.approx(billions * 1e9, rel=0.02)


@pytest.mark.parametrize("stated", [True, False])
def test_what_the_file_says_of_tables_wins(stated: bool) -> None:
    config = plain("bloom", 24, 1024, 16, None, 4096, 250880)
    more = model_from_config({**config, "tie_word_embeddings": stated}).shape.params_total
    assert more - model_from_config(config).shape.params_total == (0 if stated else 1024 * 250880)
