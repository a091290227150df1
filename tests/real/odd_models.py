"""Tiny GGUF models of zeros, of architectures whose caches are unlike: to see what llama.cpp really allocates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter

Shape = tuple[int, ...]
HIDDEN, FEED, HEADS = 64, 128, 4


def write_model(path: Path, donor: Path, arch: str, keys: dict[str, Any], tensors: dict[str, Shape]) -> Path:
    """A model with the tokenizer of `donor`; `tensors` by name, shapes as ggml counts (rows last are columns first)."""
    writer = GGUFWriter(path, arch)
    for key, value in keys.items():
        _add(writer, f"{arch}.{key}", value)
    tokens = 0
    for name, field in GGUFReader(donor).fields.items():
        if name.startswith("tokenizer."):
            kind = field.types[0]
            value = field.contents()
            writer.add_key_value(name, value, kind, field.types[1] if kind is GGUFValueType.ARRAY else None)
            tokens = len(value) if name == "tokenizer.ggml.tokens" else tokens
    whole = {"token_embd.weight": (HIDDEN, tokens), **tensors}
    if "token_embd_norm.weight" not in tensors:  # which is LFM2's name for it
        whole["output_norm.weight"] = (HIDDEN,)
    for name, shape in whole.items():
        writer.add_tensor(name, np.zeros(tuple(reversed(shape)), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, list):
        writer.add_array(key, value)
    else:
        writer.add_uint32(key, value)


def _basic(layers: int, **more: Any) -> dict[str, Any]:
    return {
        "context_length": 8192, "embedding_length": HIDDEN, "block_count": layers, "feed_forward_length": FEED,
        "attention.head_count": HEADS, "attention.layer_norm_rms_epsilon": 1e-5, **more,
    }  # fmt: skip


def _mlp(layer: int) -> dict[str, Shape]:
    block = f"blk.{layer}."
    return {
        f"{block}ffn_norm.weight": (HIDDEN,), f"{block}ffn_gate.weight": (HIDDEN, FEED),
        f"{block}ffn_up.weight": (HIDDEN, FEED), f"{block}ffn_down.weight": (FEED, HIDDEN),
    }  # fmt: skip


def _heads(layer: int, kv: int, wide: int) -> dict[str, Shape]:
    block = f"blk.{layer}."
    return {
        f"{block}attn_norm.weight": (HIDDEN,), f"{block}attn_q.weight": (HIDDEN, HEADS * wide),
        f"{block}attn_k.weight": (HIDDEN, kv * wide), f"{block}attn_v.weight": (HIDDEN, kv * wide),
        f"{block}attn_output.weight": (HEADS * wide, HIDDEN),
    }  # fmt: skip


def _mamba(layer: int, inner: int, state: int, heads: int, groups: int) -> dict[str, Shape]:
    block, channels = f"blk.{layer}.", inner + 2 * groups * state
    return {
        f"{block}attn_norm.weight": (HIDDEN,), f"{block}ssm_in.weight": (HIDDEN, inner + channels + heads),
        f"{block}ssm_conv1d.weight": (4, channels), f"{block}ssm_conv1d.bias": (channels,),
        f"{block}ssm_dt.bias": (heads,), f"{block}ssm_a": (1, heads), f"{block}ssm_d": (1, heads),
        f"{block}ssm_norm.weight": (inner // groups, groups), f"{block}ssm_out.weight": (inner, HIDDEN),
    }  # fmt: skip


_SSM = {
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 128,
    "ssm.state_size": 64,
    "ssm.time_step_rank": 4,
    "ssm.group_count": 2,
}


def gemma3(path: Path, donor: Path) -> Path:
    """Five layers with a window for one without."""
    tensors: dict[str, Shape] = {}
    for layer in range(7):
        block = f"blk.{layer}."
        tensors |= _heads(layer, 2, 32) | _mlp(layer)
        tensors |= {f"{block}{name}.weight": (HIDDEN,) for name in ("post_attention_norm", "post_ffw_norm")}
        tensors |= {f"{block}{name}.weight": (32,) for name in ("attn_q_norm", "attn_k_norm")}
    keys = _basic(7, **{"attention.head_count_kv": 2, "attention.key_length": 32, "attention.value_length": 32,
                        "attention.sliding_window": 300})  # fmt: skip
    return write_model(path, donor, "gemma3", keys, tensors)


def mamba2(path: Path, donor: Path) -> Path:
    """States alone."""
    tensors: dict[str, Shape] = {}
    for layer in range(3):
        tensors |= _mamba(layer, 128, 64, 4, 2)
    keys = _basic(3, **_SSM) | {"attention.head_count": 0, "feed_forward_length": 0}
    return write_model(path, donor, "mamba2", keys, tensors)


def falcon_h1(path: Path, donor: Path) -> Path:
    """Attention and a state in every layer."""
    tensors: dict[str, Shape] = {}
    for layer in range(3):
        tensors |= _mamba(layer, 128, 64, 4, 2) | _heads(layer, 2, 16) | _mlp(layer)
        tensors[f"blk.{layer}.ffn_norm"] = tensors.pop(f"blk.{layer}.ffn_norm.weight")
    keys = _basic(3, **_SSM, **{"attention.head_count_kv": 2, "attention.key_length": 16, "attention.value_length": 16})
    return write_model(path, donor, "falcon-h1", keys, tensors)


def lfm2(path: Path, donor: Path) -> Path:
    """Short convolutions, and attention where the list of KV heads has some."""
    tensors: dict[str, Shape] = {"token_embd_norm.weight": (HIDDEN,)}
    heads = [0, 0, 2, 0]
    for layer, kv in enumerate(heads):
        block = f"blk.{layer}."
        tensors |= _mlp(layer)
        if kv:
            tensors |= _heads(layer, kv, 16)
            tensors |= {f"{block}{name}.weight": (16,) for name in ("attn_q_norm", "attn_k_norm")}
        else:
            tensors |= {
                f"{block}attn_norm.weight": (HIDDEN,), f"{block}shortconv.conv.weight": (3, HIDDEN),
                f"{block}shortconv.in_proj.weight": (HIDDEN, 3 * HIDDEN),
                f"{block}shortconv.out_proj.weight": (HIDDEN, HIDDEN),
            }  # fmt: skip
    keys = _basic(4, **{"attention.head_count_kv": heads, "shortconv.l_cache": 3})
    return write_model(path, donor, "lfm2", keys, tensors)


def deepseek2(path: Path, donor: Path) -> Path:
    """Latent attention: one row for all heads, no values."""
    rank, rotary, plain, narrow = 32, 16, 24, 40
    tensors: dict[str, Shape] = {}
    for layer in range(3):
        block = f"blk.{layer}."
        tensors |= _mlp(layer) | {
            f"{block}attn_norm.weight": (HIDDEN,), f"{block}attn_q_a.weight": (HIDDEN, rank),
            f"{block}attn_q_a_norm.weight": (rank,),
            f"{block}attn_q_b.weight": (rank, HEADS * (plain + rotary)),
            f"{block}attn_kv_a_norm.weight": (rank,), f"{block}attn_kv_a_mqa.weight": (HIDDEN, rank + rotary),
            f"{block}attn_k_b.weight": (plain, rank, HEADS), f"{block}attn_v_b.weight": (rank, narrow, HEADS),
            f"{block}attn_output.weight": (HEADS * narrow, HIDDEN),
        }  # fmt: skip
    keys = _basic(3, **{
        "attention.head_count_kv": 1, "attention.kv_lora_rank": rank, "attention.key_length": rank + rotary,
        "attention.value_length": rank, "attention.key_length_mla": plain + rotary,
        "attention.value_length_mla": narrow, "attention.q_lora_rank": rank,
        "rope.dimension_count": rotary, "leading_dense_block_count": 3, "expert_feed_forward_length": 16,
        "expert_count": 0, "expert_used_count": 0, "expert_shared_count": 0, "expert_weights_scale": 1.0,
        "vocab_size": 49152,
    })  # fmt: skip
    return write_model(path, donor, "deepseek2", keys, tensors)


ODD_MODELS: dict[str, Callable[[Path, Path], Path]] = {
    "gemma3": gemma3, "mamba2": mamba2, "falcon-h1": falcon_h1, "lfm2": lfm2, "deepseek2": deepseek2,
}  # fmt: skip
