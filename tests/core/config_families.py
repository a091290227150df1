"""Configurations of families beyond the recorded files, with what each caches and weighs, counted by hand.

Keys and parameter counts as published by the makers (model cards, papers, configuration defaults of transformers).
`token`: bytes a token in 16 bit without end; `window`: (bytes a token, tokens); `state`: bytes; `billions`: weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Family(NamedTuple):
    config: dict[str, Any]
    token: float
    window: tuple[float, int] = (0, 0)
    state: int = 0
    billions: float = 0.0
    within: float = 0.02


def plain(
    kind: str, layers: int, hidden: int, heads: int, kv: int | None, ff: int, vocab: int, **more: Any
) -> dict[str, Any]:
    found = {
        "model_type": kind, "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
        "intermediate_size": ff, "vocab_size": vocab, "max_position_embeddings": 131072,
    }  # fmt: skip
    return {**found, **({} if kv is None else {"num_key_value_heads": kv}), **more}


def every(count: int, interval: int, other: str = "sliding_attention") -> list[str]:
    return ["full_attention" if (layer + 1) % interval == 0 else other for layer in range(count)]


GEMMA_3 = plain("gemma3_text", 62, 5376, 32, 16, 21504, 262208, head_dim=128, sliding_window=1024)
FAMILIES: dict[str, Family] = {
    "Llama-3.2-3B": Family(
        plain("llama", 28, 3072, 24, 8, 8192, 128256, tie_word_embeddings=True), 114688, billions=3.21
    ),
    "Llama-2-7B, no KV heads named": Family(plain("llama", 32, 4096, 32, None, 11008, 32000), 524288, billions=6.74),
    "Mistral-7B-v0.1, all sliding": Family(
        plain("mistral", 32, 4096, 32, 8, 14336, 32000, sliding_window=4096), 0, (131072, 4096), billions=7.24
    ),
    "Mistral-7B-v0.3": Family(
        plain("mistral", 32, 4096, 32, 8, 14336, 32768, sliding_window=None), 131072, billions=7.25
    ),
    "Mistral-Small-3.2-24B, nested": Family(
        {"model_type": "mistral3", "text_config": plain("mistral", 40, 5120, 32, 8, 32768, 131072, head_dim=128)},
        163840, billions=23.6,
    ),
    "Mistral-Small-4, latent": Family(
        plain("mistral4", 36, 4096, 32, 32, 12288, 131072, kv_lora_rank=256, qk_rope_head_dim=64, qk_nope_head_dim=64,
              v_head_dim=128, q_lora_rank=1024, n_routed_experts=128, num_experts_per_tok=4,
              moe_intermediate_size=2048, n_shared_experts=1), 23040,
    ),
    "Qwen2.5-7B, window not in use": Family(
        plain("qwen2", 28, 3584, 28, 4, 18944, 152064, sliding_window=131072, use_sliding_window=False,
              max_window_layers=28), 57344, billions=7.62,
    ),
    "Qwen2, upper layers sliding": Family(
        plain("qwen2", 28, 3584, 28, 4, 18944, 152064, sliding_window=4096, use_sliding_window=True,
              max_window_layers=21), 43008, (14336, 4096),
    ),
    "Qwen3-Next-80B-A3B": Family(
        plain("qwen3_next", 48, 2048, 16, 2, 5120, 151936, head_dim=256, full_attention_interval=4,
              linear_num_value_heads=32, linear_num_key_heads=16, linear_key_head_dim=128, linear_value_head_dim=128,
              num_experts=512, num_experts_per_tok=10, moe_intermediate_size=512, shared_expert_intermediate_size=512,
              attn_output_gate=True), 24576, state=77266944, billions=79.7,
    ),
    "Gemma-2-9B, family's pattern": Family(
        plain("gemma2", 42, 3584, 16, 8, 14336, 256000, sliding_window=4096), 172032, (172032, 4096), billions=9.24
    ),
    "Gemma-3-27B, family's pattern": Family({"model_type": "gemma3", "text_config": GEMMA_3}, 81920, (425984, 1024),
                                            billions=27.0),
    "Gemma-3-4B, its text_config as published": Family(
        {"model_type": "gemma3", "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
         "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024}}, 20480, (118784, 1024),
        billions=3.88,
    ),
    "Gemma-3n-E4B, shared caches": Family(
        plain("gemma3n_text", 35, 2048, 8, 2, 16384, 262400, head_dim=256, sliding_window=512, num_kv_shared_layers=15,
              layer_types=every(35, 5)), 8192, (32768, 512),
    ),
    "Gemma-4-E4B, global heads twice as wide": Family(
        plain("gemma4_text", 42, 2560, 8, 2, 10240, 262144, head_dim=256, global_head_dim=512, sliding_window=512,
              num_kv_shared_layers=18, layer_types=every(42, 6)), 16384, (40960, 512),
    ),
    "Phi-4": Family(plain("phi3", 40, 5120, 40, 10, 17920, 100352, sliding_window=None), 204800, billions=14.66),
    "Phi-3-mini-4k, all sliding": Family(
        plain("phi3", 32, 3072, 32, 32, 8192, 32064, sliding_window=2047), 0, (393216, 2047), billions=3.82
    ),
    "Phi-4-mini, window beyond its context": Family(
        plain("phi3", 32, 3072, 24, 8, 8192, 200064, sliding_window=262144, tie_word_embeddings=True), 131072,
        billions=3.84,
    ),
    "Command-R7B, three sliding then one full": Family(
        plain("cohere2", 32, 4096, 32, 8, 14336, 256000, sliding_window=4096, sliding_window_pattern=4,
              tie_word_embeddings=True), 32768, (98304, 4096), billions=8.03,
    ),
    "EXAONE-4-32B, pattern in letters": Family(
        plain("exaone4", 64, 5120, 40, 8, 27392, 102400, head_dim=128, sliding_window=4096,
              sliding_window_pattern="LLLG"), 65536, (196608, 4096), billions=32.0,
    ),
    "OLMo-3-7B": Family(
        plain("olmo3", 32, 4096, 32, 32, 11008, 100278, sliding_window=4096, layer_types=every(32, 4)), 131072,
        (393216, 4096), billions=7.3,
    ),
    "DeepSeek-V2-Lite": Family(
        plain("deepseek_v2", 27, 2048, 16, 16, 10944, 102400, kv_lora_rank=512, qk_rope_head_dim=64,
              qk_nope_head_dim=128, v_head_dim=128, n_routed_experts=64, num_experts_per_tok=6, n_shared_experts=2,
              moe_intermediate_size=1408, first_k_dense_replace=1), 31104, billions=15.7,
    ),
    "MiniCPM3-4B, low rank but whole heads": Family(
        plain("minicpm3", 62, 2560, 40, 40, 6400, 73448, kv_lora_rank=256, qk_rope_head_dim=32, qk_nope_head_dim=64),
        62 * 40 * 2 * 96 * 2,
    ),
    "GLM-4.5-Air": Family(
        plain("glm4_moe", 46, 4096, 96, 8, 10944, 151552, head_dim=128, n_routed_experts=128, num_experts_per_tok=8,
              n_shared_experts=1, moe_intermediate_size=1408, first_k_dense_replace=1), 188416, billions=106.85,
    ),
    "ChatGLM3-6B, its own key names": Family(
        {"model_type": "chatglm", "num_layers": 28, "hidden_size": 4096, "num_attention_heads": 32, "kv_channels": 128,
         "multi_query_attention": True, "multi_query_group_num": 2, "ffn_hidden_size": 13696,
         "padded_vocab_size": 65024, "seq_length": 8192}, 28672, billions=6.24,
    ),
    "Kimi-Linear-48B-A3B": Family(
        plain("kimi_linear", 27, 2304, 32, 32, 9216, 163840, kv_lora_rank=512, qk_rope_head_dim=64,
              qk_nope_head_dim=128, v_head_dim=128, mla_use_nope=True, num_experts=256, num_experts_per_token=8,
              num_shared_experts=1,
              moe_intermediate_size=1024, first_k_dense_replace=1, linear_attn_config={
                  "full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128, "num_heads": 32,
                  "short_conv_kernel_size": 4}), 7 * 576 * 2,
        state=20 * (32 * 128 * 128 * 4 + 3 * 32 * 128 * 3 * 2), billions=49.1,
    ),
    "MiniMax-M1, lightning attention": Family(
        plain("minimax_m1", 80, 6144, 64, 8, 9216, 200064, head_dim=128, num_local_experts=32, num_experts_per_tok=2,
              attn_type_list=([0] * 7 + [1]) * 10), 40960, state=70 * 64 * 128 * 128 * 4, billions=456.0,
    ),
    "Jamba-1.5-Mini": Family(
        plain("jamba", 32, 4096, 32, 8, 14336, 65536, attn_layer_period=8, attn_layer_offset=4, expert_layer_period=2,
              expert_layer_offset=1, num_experts=16, num_experts_per_tok=2, mamba_d_state=16, mamba_d_conv=4,
              mamba_expand=2), 16384, state=28 * (8192 * 16 * 4 + 8192 * 3 * 2), billions=51.6,
    ),
    "Falcon-H1-7B, attention beside Mamba": Family(
        plain("falcon_h1", 44, 3072, 12, 2, 12288, 130048, head_dim=128, mamba_d_ssm=3072, mamba_n_heads=24,
              mamba_d_head=128, mamba_d_state=256, mamba_n_groups=1, mamba_d_conv=4), 45056,
        state=44 * (24 * 128 * 256 * 4 + (3072 + 2 * 256) * 3 * 2),
    ),
    "Granite-4.0-H-Small": Family(
        plain("granitemoehybrid", 40, 4096, 32, 8, 768, 100352, num_local_experts=72, num_experts_per_tok=10,
              shared_intermediate_size=1536, mamba_n_heads=128, mamba_d_head=64, mamba_d_state=128, mamba_n_groups=1,
              mamba_d_conv=4, tie_word_embeddings=True, layer_types=[
                  "attention" if layer in (5, 15, 25, 35) else "mamba" for layer in range(40)]), 16384,
        state=36 * (128 * 64 * 128 * 4 + (8192 + 2 * 128) * 3 * 2), billions=32.2,
    ),
    "Mamba-2.8B, no attention": Family(
        {"model_type": "mamba", "num_hidden_layers": 64, "hidden_size": 2560, "intermediate_size": 5120,
         "state_size": 16, "conv_kernel": 4, "time_step_rank": 160, "vocab_size": 50280, "tie_word_embeddings": True},
        0, state=64 * (5120 * 16 * 4 + 5120 * 3 * 2), billions=2.77,
    ),
    "LFM2-1.2B, short convolutions": Family(
        plain("lfm2", 16, 2048, 32, 8, 8192, 65536, conv_L_cache=3, tie_word_embeddings=True, layer_types=[
            "full_attention" if layer in (2, 5, 8, 10, 12, 14) else "conv" for layer in range(16)]), 12288,
        state=10 * 2048 * 2 * 2, billions=1.17,
    ),
    "Hunyuan-Large, every second layer shares": Family(
        plain("hunyuan", 64, 6400, 80, 8, 18304, 129024, head_dim=128, use_cla=True, cla_share_factor=2), 131072
    ),
    "DBRX, nested key names": Family(
        {"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32768,
         "vocab_size": 100352, "attn_config": {"kv_n_heads": 8},
         "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}}, 163840, billions=131.6,
    ),
    "StarCoder2-7B": Family(
        plain("starcoder2", 32, 4608, 36, 4, 18432, 49152, sliding_window=4096, tie_word_embeddings=True), 0,
        (65536, 4096), billions=7.17, within=0.03,
    ),
    "StarCoder, one head for all": Family(
        {"model_type": "gpt_bigcode", "n_layer": 40, "n_embd": 6144, "n_head": 48, "n_positions": 8192,
         "n_inner": 24576, "vocab_size": 49152, "multi_query": True, "tie_word_embeddings": True}, 20480, billions=15.5,
    ),
    "Falcon-40B, its own key names": Family(
        {"model_type": "falcon", "num_hidden_layers": 60, "hidden_size": 8192, "num_attention_heads": 128,
         "num_kv_heads": 8, "new_decoder_architecture": True, "multi_query": True, "vocab_size": 65024}, 122880,
        billions=41.3,
    ),
    "GPT-2": Family(
        {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257},
        36864, billions=0.124,
    ),
    "LongCat-Flash, two attentions a layer": Family(
        plain("longcat_flash", 28, 6144, 64, 64, 12288, 131072, kv_lora_rank=512, qk_rope_head_dim=64), 56 * 576 * 2
    ),
    "GLM-5-Next, KDA and latent with a pooled index": Family(
        plain("glm5_next", 8, 4096, 64, 64, 12288, 154880, kv_lora_rank=512, linear_head_dim=128, linear_num_heads=64,
              linear_conv_kernel_dim=4, index_topk=2048, index_head_dim=128, index_kpool=16,
              layer_types=["linear_attention"] * 3 + ["indexed_attention"] + ["linear_attention"] * 3
              + ["indexed_attention"], indexer_types=["full"] * 8), 2 * 512 * 2 + 2 * 132 / 16,
        state=6 * (64 * 128 * 128 * 4 + 3 * 64 * 128 * 3 * 2),
    ),
}  # fmt: skip
