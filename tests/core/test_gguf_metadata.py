"""GGUF metadata of every kind of architecture against bytes counted by hand, as llama.cpp allocates them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from gateway.config.catalog import known_model
from gateway.core.kv.described import ModelFileError
from gateway.core.kv.gguf.header import GgufHeader, GgufTensor, LongArray
from gateway.core.kv.gguf.reader import model_from_gguf
from gateway.core.kv.grouped import ChunkedLocalGqa
from gateway.core.kv.model import ModelShape


def header(arch: str, tensors: tuple[GgufTensor, ...] = (), **keys: Any) -> GgufHeader:
    """Keys with `__` for each dot."""
    metadata = {f"{arch}.{key.replace('__', '.')}": value for key, value in keys.items()}
    return GgufHeader(3, {"general.architecture": arch, **metadata}, tensors)


def shape_of(arch: str, **keys: Any) -> ModelShape:
    return model_from_gguf(header(arch, **keys)).shape


def heads(layers: int, kv: Any, wide: int, **more: Any) -> dict[str, Any]:
    return {
        "block_count": layers, "embedding_length": 4096, "attention__head_count": 32, "attention__head_count_kv": kv,
        "attention__key_length": wide, "attention__value_length": wide, "context_length": 131072, **more,
    }  # fmt: skip


class Case(NamedTuple):
    arch: str
    keys: dict[str, Any]
    token: float
    window: tuple[float, int] = (0, 0)
    state: int = 0


SSM = {"ssm__conv_kernel": 4, "ssm__inner_size": 4096, "ssm__state_size": 128, "ssm__time_step_rank": 32,
       "ssm__group_count": 16}  # fmt: skip
MAMBA2 = 4096 * 128 * 4 + (4096 + 2 * 16 * 128) * 3 * 2
DELTA = 2146304
CASES = {
    "llama": Case("llama", {"block_count": 32, "embedding_length": 4096, "attention__head_count": 32,
                            "attention__head_count_kv": 8}, 131072),
    "no KV heads named": Case("llama", {"block_count": 32, "embedding_length": 4096, "attention__head_count": 32},
                              524288),
    "a window that llama.cpp ignores": Case("llama", heads(32, 8, 128, attention__sliding_window=4096), 131072),
    "phi3, its window not in use": Case("phi3", heads(32, 32, 96, attention__sliding_window=2047), 393216),
    "KV heads listed, layers without attention": Case("deci", heads(4, (8, 0, 8, 8), 128), 3 * 4096),
    "gemma2, default window": Case("gemma2", heads(42, 8, 256), 172032, (172032, 4096)),
    "gemma3": Case("gemma3", heads(62, 16, 128, attention__sliding_window=1024), 81920, (425984, 1024)),
    "gemma3, no window": Case("gemma3", heads(62, 16, 128), 62 * 8192),
    "gemma3, own interval": Case("gemma3", heads(8, 1, 256, attention__sliding_window=512,
                                                 attention__sliding_window_pattern=2), 4096, (4096, 512)),
    "gemma3n, sharing from layer 20": Case("gemma3n", heads(35, 2, 256, attention__sliding_window=512), 8192,
                                           (32768, 512)),
    "gemma4": Case("gemma4", heads(6, (8, 8, 8, 8, 8, 2), 512, attention__sliding_window=1024,
                                   attention__sliding_window_pattern=(True,) * 5 + (False,),
                                   attention__key_length_swa=256, attention__value_length_swa=256), 4096,
                   (5 * 8192, 1024)),
    "gemma4, shared": Case("gemma4", heads(6, 2, 512, attention__sliding_window=512, attention__shared_kv_layers=2,
                                           attention__sliding_window_pattern=(True, True, False) * 2,
                                           attention__key_length_swa=256, attention__value_length_swa=256), 4096,
                           (3 * 2048, 512)),
    "cohere2": Case("cohere2", heads(32, 8, 128, attention__sliding_window=4096), 32768, (98304, 4096)),
    "cohere2moe, full first": Case("cohere2moe", heads(9, 8, 128, attention__sliding_window=4096), 3 * 4096,
                                   (6 * 4096, 4096)),
    "gpt-oss": Case("gpt-oss", heads(24, 8, 64, attention__sliding_window=128), 24576, (24576, 128)),
    "exaone4 of 64 layers": Case("exaone4", heads(64, 8, 128), 65536, (196608, 4096)),
    "exaone4 of 30 layers": Case("exaone4", heads(30, 8, 64, attention__sliding_window=4096), 61440),
    "smallthinker, fixed window": Case("smallthinker", heads(8, 4, 128, attention__sliding_window=9), 2 * 2048,
                                       (6 * 2048, 4096)),
    "smallthinker, none": Case("smallthinker", heads(8, 4, 128), 8 * 2048),
    "mimo2, by list": Case("mimo2", heads(4, (4, 8, 8, 4), 192, attention__value_length=128,
                                          attention__sliding_window=128,
                                          attention__sliding_window_pattern=(0, 1, 1, 0)), 2 * 4 * 320 * 2,
                           (2 * 8 * 320 * 2, 128)),
    "deepseek2, latent": Case("deepseek2", heads(61, 1, 576, attention__kv_lora_rank=512, attention__key_length_mla=192,
                                                 attention__value_length_mla=128), 70272),
    "deepseek2, an old file with whole heads": Case("deepseek2", heads(2, 16, 192, attention__kv_lora_rank=512,
                                                                       attention__value_length=128), 2 * 16 * 320 * 2),
    "deepseek32, index in 16 bit": Case("deepseek32", heads(62, 1, 576, attention__kv_lora_rank=512,
                                                            attention__key_length_mla=192, nextn_predict_layers=1,
                                                            attention__indexer__key_length=128), 61 * (1152 + 256)),
    "glm-dsa, index in some layers": Case("glm-dsa", heads(4, 1, 576, attention__kv_lora_rank=512,
                                                           attention__key_length_mla=256,
                                                           attention__indexer__key_length=128,
                                                           attention__indexer__types=(1, 0, 0, 1)), 4 * 1152 + 2 * 256),
    "minimax-m3": Case("minimax-m3", heads(60, 4, 128, attention__indexer__key_length=128,
                                           leading_dense_block_count=3), 122880 + 57 * 256),
    "qwen3next": Case("qwen3next", heads(48, 2, 256, **SSM), 24576, state=36 * DELTA),
    "qwen35, interval and drafting": Case("qwen35", heads(9, 2, 256, **SSM, full_attention_interval=2,
                                                          nextn_predict_layers=1), 4 * 2048, state=4 * DELTA),
    "qwen35, by list": Case("qwen35", heads(3, 2, 256, **SSM, attention__recurrent_layers=(True, True, False)), 2048,
                            state=2 * DELTA),
    "granitehybrid": Case("granitehybrid", heads(4, (0, 8, 0, 0), 128, **SSM), 4096, state=3 * MAMBA2),
    "nemotron_h, feed-forward layers": Case("nemotron_h", heads(4, (0, 0, 2, 0), 128, **SSM,
                                                                feed_forward_length=(0, 8, 0, 0)), 1024,
                                            state=2 * MAMBA2),
    "falcon-h1": Case("falcon-h1", heads(4, 2, 128, **SSM), 4096, state=4 * MAMBA2),
    "jamba": Case("jamba", heads(8, (0, 0, 0, 0, 8, 0, 0, 0), 128, ssm__conv_kernel=4, ssm__inner_size=8192,
                                 ssm__state_size=16, ssm__time_step_rank=256), 4096,
                  state=7 * (8192 * 16 * 4 + 8192 * 3 * 2)),
    "mamba": Case("mamba", {"block_count": 64, "embedding_length": 2560, "ssm__conv_kernel": 4,
                            "ssm__inner_size": 5120, "ssm__state_size": 16, "ssm__time_step_rank": 160}, 0,
                  state=64 * (5120 * 16 * 4 + 5120 * 3 * 2)),
    "kimi-linear": Case("kimi-linear", heads(4, (0, 0, 0, 1), 576, attention__kv_lora_rank=512, kda__head_dim=128,
                                             attention__key_length_mla=192), 1152,
                        state=3 * (32 * 128 * 128 * 4 + 3 * 32 * 128 * 3 * 2)),
    "lfm2": Case("lfm2", heads(4, (0, 0, 8, 0), 64, shortconv__l_cache=3), 2048, state=3 * 4096 * 2 * 2),
    "minimax-01": Case("minimax-01", heads(16, 8, 128), 2 * 4096, state=14 * 32 * 128 * 128 * 4),
    "rwkv7": Case("rwkv7", {"block_count": 2, "embedding_length": 2048, "wkv__head_size": 64}, 0,
                  state=2 * (2048 * 64 * 4 + 2048 * 2 * 4)),
    "bert": Case("bert", heads(12, 12, 64), 0),
    "not causal": Case("llama", heads(12, 12, 64, attention__causal=False), 0),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_caches(case: Case) -> None:
    kv = shape_of(case.arch, **case.keys).kv()
    assert kv.bytes_per_token == case.token
    assert (kv.window_bytes_per_token, kv.window) == case.window
    assert kv.state_bytes == case.state


def test_llama_4_is_chunked() -> None:
    found = shape_of("llama4", **heads(48, 8, 128))
    assert ChunkedLocalGqa(36, 8, 128, 8192) in found.layers
    known = known_model("Llama-4-Scout-17B-16E")
    assert known is not None
    assert found.kv() == known.kv()


def test_deepseek_4_is_the_catalogues_but_for_its_index() -> None:
    ratios = (0, 0) + (4, 128) * 20 + (4,)
    found = shape_of("deepseek4", **heads(43, 1, 512, attention__compress_ratios=ratios, attention__sliding_window=128,
                                          attention__indexer__key_length=128)).kv()  # fmt: skip
    known = known_model("DeepSeek-V4-Flash")
    assert known is not None
    kv = known.kv()
    assert found.bytes_per_token - kv.bytes_per_token == 21 * (256 - 132) / 4
    assert (found.window_bytes_per_token, found.window, found.state_bytes) == (
        kv.window_bytes_per_token, kv.window, kv.state_bytes
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arch", "keys", "message"),
    [
        ("llama", {}, r"llama\.block_count is missing"),
        ("llama", {"block_count": 5000}, r"llama\.block_count is 5000"),
        ("llama", {"block_count": 2, "nextn_predict_layers": 2}, r"llama\.nextn_predict_layers is 2"),
        ("llama", heads(4, (8, 8), 128), r"llama\.attention\.head_count_kv must list"),
        ("llama", {"block_count": 2, "attention__head_count_kv": 8}, r"llama\.attention\.head_count is missing"),
        ("gemma4", heads(4, 8, 128, attention__sliding_window=512), "sliding_window_pattern is missing"),
        ("gemma3", heads(4, 8, 128, attention__sliding_window=9, attention__sliding_window_pattern=(True,)),
         r"gemma3\.attention\.sliding_window_pattern has 1 layers, the model 4"),
        ("gemma4", heads(2, 8, 128, attention__sliding_window=512, attention__shared_kv_layers=2,
                         attention__sliding_window_pattern=(True, True)), "shared_kv_layers is 2 of 2"),
        ("mamba2", {"block_count": 2}, r"mamba2\.ssm\.inner_size is missing"),
        ("kimi-linear", heads(2, (0, 1), 576), r"kimi-linear\.kda\.head_dim is missing"),
        ("lfm2", heads(2, (0, 1), 64), r"lfm2\.shortconv\.l_cache is missing"),
        ("llama", heads(4, 8, 128, attention__head_count=0), "attention.head_count 0: no layer has more KV heads"),
        ("llama", {"block_count": 2, "attention__head_count": 0}, r"llama\.attention\.head_count must be at least 1"),
        ("llama", heads(4, 64, 128), r"llama\.attention\.head_count_kv is 64, and attention\.head_count 32"),
        ("deci", heads(2, (0, 0), 128), r"deci\.attention\.head_count must be at least 1"),
        ("clip", {"block_count": 2}, "general.architecture is clip: an image encoder"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_as_it_stands_in_the_file(arch: str, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        shape_of(arch, **keys)


def test_a_file_without_architecture() -> None:
    with pytest.raises(ModelFileError, match=r"general\.architecture is missing"):
        model_from_gguf(GgufHeader(3, {}, ()))


def test_what_llama_cpp_leaves_out_is_said() -> None:
    found = model_from_gguf(header("llama", **heads(32, 8, 128, attention__sliding_window=4096)))
    assert found.caveats == ("llama.cpp doesn't use the sliding window of llama: every layer keeps all tokens",)


def tensor(name: str, *shape: int, kind: int = 8, size: int = 34) -> GgufTensor:
    return GgufTensor(name, shape, kind, size)


def test_weights_are_counted_from_tensors() -> None:
    tensors = (
        tensor("token_embd.weight", 64, 1000),
        tensor("output.weight", 64, 1000),
        tensor("blk.0.attn_q.weight", 64, 64),
        tensor("blk.0.ffn_gate_inp.weight", 64, 8, kind=0),
        tensor("blk.0.ffn_up_exps.weight", 64, 32, 8),
        tensor("blk.0.ffn_down_exps.weight", 32, 64, 8),
    )
    described = model_from_gguf(header("qwen3moe", tensors, **heads(1, 8, 128, expert_count=8, expert_used_count=2)))
    found = described.shape
    routed = 2 * 64 * 32 * 8
    assert found.params_total == 2 * 64_000 + 4096 + 512 + routed
    assert found.read_params == 64_000 + 4096 + 512 + routed / 4
    assert (found.expert_params, found.experts, found.experts_per_token) == (routed, 8, 2)
    assert (described.weights_bytes, described.weights_exact, described.weights_format) == (6 * 34, True, "Q8_0")


def test_a_tied_table_is_read_as_the_output() -> None:
    described = model_from_gguf(header("llama", (tensor("token_embd.weight", 64, 1000),), **heads(1, 8, 128)))
    assert described.shape.read_params == described.shape.params_total == 64_000


def test_tokenizer_template_and_name() -> None:
    metadata = {
        **header("llama", **heads(1, 8, 128)).metadata, "general.name": "A Model", "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": LongArray(151936), "tokenizer.chat_template": "{{ messages }}",
    }  # fmt: skip
    found = model_from_gguf(GgufHeader(3, metadata, ()))
    assert (found.shape.id, found.shape.vocab, found.shape.max_context) == ("A Model", 151936, 131072)
    assert (found.chat_template, found.tokenizer) == (True, "gpt2")
    bare = model_from_gguf(header("llama", **heads(1, 8, 128, vocab_size=7)), name="mine")
    assert (bare.shape.id, bare.shape.vocab, bare.chat_template, bare.tokenizer) == ("mine", 7, False, "")


def test_parts_that_are_missing_are_said() -> None:
    whole = header("llama", **heads(1, 8, 128))
    found = model_from_gguf(GgufHeader(3, whole.metadata, (), parts=3, missing=2))
    assert found.caveats == ("2 of 3 parts are not here: weights are of the others",)
    assert not found.weights_exact
