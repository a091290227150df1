"""Text models inside multimodal files that leave sizes to their configuration class."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.hf_config.reader import model_from_config

LLAVA_15 = {"model_type": "llama", "max_position_embeddings": 4096, "torch_dtype": "float16", "vocab_size": 32064}
LLAVA_NEXT = {"model_type": "mistral", "intermediate_size": 14336, "max_position_embeddings": 32768,
              "num_key_value_heads": 8, "sliding_window": None, "vocab_size": 32064}  # fmt: skip
QWEN2_AUDIO = {"model_type": "qwen2", "intermediate_size": 11008, "max_position_embeddings": 8192, "vocab_size": 156032}
PIXTRAL = {"model_type": "mistral", "head_dim": 128, "hidden_size": 5120, "intermediate_size": 14336,
           "max_position_embeddings": 1024000, "num_hidden_layers": 40, "num_key_value_heads": 8,
           "sliding_window": None, "vocab_size": 131072}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "token", "billions", "window"),
    [
        (LLAVA_15, 32 * 32 * 256 * 2, 6.74, 4096),
        (LLAVA_NEXT, 32 * 8 * 256 * 2, 7.24, 32768),
        (QWEN2_AUDIO, 32 * 32 * 256 * 2, 7.75, 8192),
        (PIXTRAL, 40 * 8 * 256 * 2, 12.25, 1024000),
    ],
)
def test_a_silent_text_model_has_its_classs_sizes(
    text: dict[str, Any], token: int, billions: float, window: int
) -> None:
    found = model_from_config({"model_type": "llava", "text_config": text})
    kv = found.shape.kv()
    assert (kv.bytes_per_token, kv.window_bytes_per_token) == (token, 0)
    assert found.shape.params_total == pytest.approx(billions * 1e9, rel=0.02)
    assert found.shape.max_context == window


def test_what_was_assumed_is_said() -> None:
    found = model_from_config({"model_type": "llava", "text_config": PIXTRAL})
    assert found.caveats == ("not in the file, so as transformers' class for mistral has it: num_attention_heads 32",)
    stated = model_from_config({"model_type": "llava", "text_config": {**PIXTRAL, "num_attention_heads": 32}})
    assert (stated.shape.kv(), stated.caveats) == (found.shape.kv(), ())


def test_the_file_around_is_asked_first() -> None:
    found = model_from_config({"model_type": "llava", "text_config": LLAVA_15, "num_hidden_layers": 40})
    assert found.shape.depth == 40
    assert "num_hidden_layers" not in found.caveats[0]


def test_null_is_stated() -> None:
    found = model_from_config({"text_config": {**LLAVA_NEXT, "num_key_value_heads": None}})
    assert "num_key_value_heads" not in found.caveats[0]


def test_a_model_of_its_own_must_state_its_sizes() -> None:
    with pytest.raises(ModelFileError, match="num_hidden_layers is missing"):
        model_from_config(LLAVA_15)
    with pytest.raises(ModelFileError, match="num_hidden_layers is missing"):
        model_from_config({"text_config": {**LLAVA_15, "model_type": "novel_lm"}})
