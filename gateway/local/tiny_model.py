"""A llama-architecture GGUF of random weights that runs some fifty times faster than the smallest real model.

The tokenizer and the chat template are the donor's, so token counts, context limits, slots, prefix cache and errors
are the engine's real ones; only the words mean nothing. Tokens that are not common words get output weights of zero: a
stream then has one readable event a token, and no answer ends early by a chance end-of-sequence token.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter

__all__ = ["TinyShape", "write_tiny"]

# Byte-level BPE writes a leading space as U+0120, and numbers its merges by frequency: the first are common words.
_WORD = re.compile("^\u0120[a-z]{2,}$")
_COMMON = 4000


@dataclass(frozen=True, slots=True)
class TinyShape:
    """Layer sizes. Two bytes a KV element: layers * 2 * kv_heads * (width / heads) * 2 = 256 bytes a token."""

    width: int = 64
    feed_forward: int = 128
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    context: int = 32768
    """Trained context window, in tokens."""

    @property
    def kv_width(self) -> int:
        """Elements of K (and of V) a token and layer."""
        return self.width // self.heads * self.kv_heads


def write_tiny(donor: Path, target: Path, shape: TinyShape | None = None) -> None:
    """Write `target` with the tokenizer of `donor`; appears whole or not at all, also when two processes race."""
    sizes = shape or TinyShape()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        writer = GGUFWriter(partial, "llama")
        _add_architecture(writer, sizes)
        words = _copy_tokenizer(GGUFReader(donor), writer)
        _add_tensors(writer, sizes, words)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _add_architecture(writer: GGUFWriter, shape: TinyShape) -> None:
    writer.add_name("tiny-random-llama")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_layer_norm_rms_eps(1e-5)


def _copy_tokenizer(donor: GGUFReader, writer: GGUFWriter) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Copy every tokenizer field; returns which tokens are common words."""
    tokens: list[str] = []
    for name, field in donor.fields.items():
        if not name.startswith("tokenizer."):
            continue
        value, kind = field.contents(), field.types[0]
        writer.add_key_value(name, value, kind, field.types[1] if kind is GGUFValueType.ARRAY else None)
        if name == "tokenizer.ggml.tokens":
            tokens = value
    writer.add_vocab_size(len(tokens))
    return np.array([number < _COMMON and bool(_WORD.match(token)) for number, token in enumerate(tokens)])


def _add_tensors(writer: GGUFWriter, shape: TinyShape, words: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    chance = np.random.default_rng(0)

    def matrix(rows: int, columns: int, scale: float) -> np.ndarray[Any, np.dtype[np.float32]]:
        return (chance.standard_normal((rows, columns)) * scale).astype(np.float32)

    vocabulary, width, kv_width = len(words), shape.width, shape.kv_width
    writer.add_tensor("token_embd.weight", matrix(vocabulary, width, 0.5).astype(np.float16))
    writer.add_tensor("output.weight", (matrix(vocabulary, width, 0.5) * words[:, None]).astype(np.float16))
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"{block}{norm}.weight", np.ones(width, np.float32))
        for name, rows, columns in (
            ("attn_q", width, width),
            ("attn_k", kv_width, width),
            ("attn_v", kv_width, width),
            ("attn_output", width, width),
            ("ffn_gate", shape.feed_forward, width),
            ("ffn_up", shape.feed_forward, width),
            ("ffn_down", width, shape.feed_forward),
        ):
            writer.add_tensor(f"{block}{name}.weight", matrix(rows, columns, 0.2))
