"""Families that are known by their `model_type`, and the keys that their config.json files may leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["DEFAULTS", "KNOWN"]

_GEMMA3 = {
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
    "max_position_embeddings": 131072, "sliding_window": 4096, "tie_word_embeddings": True,
}  # fmt: skip

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "gemma3_text": _GEMMA3,
    "gemma3": _GEMMA3,
    "gemma": {"head_dim": 256, "tie_word_embeddings": True},
    "gemma2": {"head_dim": 256, "sliding_window": 4096, "tie_word_embeddings": True},
    "gemma3n_text": {
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "sliding_window": 512,
        "num_kv_shared_layers": 15, "tie_word_embeddings": True,
    },
    "gemma4_text": {"head_dim": 256, "global_head_dim": 512, "tie_word_embeddings": True},
    "llama4_text": {"head_dim": 128, "num_key_value_heads": 8, "tie_word_embeddings": False},
    "longcat_flash": {"attentions_per_layer": 2},
    "qwen3": {"head_dim": 128},
    "gpt_oss": {"head_dim": 64, "num_key_value_heads": 8},
    "starcoder2": {"num_key_value_heads": 2},
    "mistral": {"num_key_value_heads": 8},
    "mixtral": {"num_key_value_heads": 8},
    "step3_text": {"moe_layers_enum": list(range(4, 60))},
}  # fmt: skip
"""What each family's configuration class of transformers 5.24 assumes where a file is silent."""

_NAMES = """
llama llama4 llama4_text mistral mistral3 mistral4 ministral ministral3 mixtral pixtral qwen2 qwen2_moe qwen2_vl
qwen2_5_vl qwen2_5_vl_text qwen2_vl_text qwen3 qwen3_moe qwen3_next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text
qwen3_vl qwen3_vl_text qwen3_vl_moe qwen3_vl_moe_text qwen3_omni_moe_text gemma gemma2 gemma3 gemma3_text gemma3n
gemma3n_text gemma4 gemma4_text phi phi3 phi3_v phi4mm phimoe gpt_oss deepseek deepseek_v2 deepseek_v3 deepseek_v32
deepseek_v4 kimi_k2 kimi_k25 kimi_k3 kimi_linear glm glm4 glm4_moe glm4_moe_lite glm_moe_dsa glm5_next chatglm minimax
minimax_m1 minimax_text_01 minimax_m2 minimax_m3 minimax_m3_vl nemotron nemotron_h nemotron-nas granite granitemoe
granitemoehybrid bamba falcon falcon_h1 falcon_mamba jamba mamba mamba2 zamba2 cohere cohere2 olmo olmo2 olmo3 olmoe
mimo mimo_v2_flash hunyuan hunyuan_v1_dense hunyuan_v1_moe ernie4_5 ernie4_5_moe dbrx starcoder2 gpt_bigcode gpt2
gpt_neox gptj bloom mpt opt step3_text step3p5 step3p7 smollm3 lfm2 lfm2_moe internlm2 internlm3 baichuan qwen exaone
exaone4 exaone_moe seed_oss arcee apertus dots1 longcat_flash bailing_hybrid olmo_hybrid minicpm minicpm3 plm solar
stablelm internvl_chat bert roberta xlm-roberta camembert distilbert electra albert mpnet modernbert nomic_bert new
deberta deberta-v2 eurobert
"""
KNOWN = frozenset(_NAMES.split())
"""Families whose keys are read as their own code reads them."""
