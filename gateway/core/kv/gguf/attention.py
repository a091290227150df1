"""What each layer of a GGUF model caches, as llama.cpp allocates it (llama-model.cpp, llama-kv-cache.cpp, b11434)."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.gguf.keys import GgufKeys
from gateway.core.kv.gguf.recurrent import BESIDE_ATTENTION, recurrent_layers, state_layers
from gateway.core.kv.gguf.windows import Windows, windows_of
from gateway.core.kv.grouped import ChunkedLocalGqa, EncoderOnly, FullGqa, KvShared, SlidingGqa
from gateway.core.kv.latent import CompressedMla, CompressorState, DsaIndexer, Mla, SlidingMla
from gateway.core.kv.layers import AttentionLayers

__all__ = ["Attention", "layers_of"]

_ENCODERS = frozenset(
    (
        "bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3", "eurobert",
        "gemma-embedding", "t5encoder", "wavtokenizer-dec", "clef", "dream", "llada", "llada-moe", "rnd1",
    )
)  # fmt: skip
"""No cache at all: encoders, and models that write all tokens at once."""
_INDEXED = frozenset(("deepseek32", "glm-dsa", "hy_v4", "glm5-next", "qwen4exp"))
_MAX_LAYERS = 4096
_SHARING_FROM = {"gemma3n": 20}
"""The first layer that reads an earlier layer's cache, where the file doesn't tell."""


@dataclass(frozen=True, slots=True)
class Attention:
    """One value for each cache of each layer; `depth` layers besides `drafting` ones; `caveats` for a person."""

    layers: tuple[AttentionLayers, ...]
    depth: int
    drafting: int = 0
    caveats: tuple[str, ...] = ()


def layers_of(keys: GgufKeys) -> Attention:
    """Every layer's cache. Raises ModelFileError naming the key that is missing or contradicts another."""
    count, drafting = keys.positive("block_count"), keys.whole("nextn_predict_layers", default=0)
    if count > _MAX_LAYERS:
        raise ModelFileError(f"{keys.spelled('block_count')} is {count}: no model has so many layers")
    if drafting >= count:
        raise ModelFileError(f"{keys.spelled('nextn_predict_layers')} is {drafting}, the model has {count} layers")
    depth = count - drafting
    if keys.arch in _ENCODERS or keys.get("attention.causal") is False:
        return Attention((EncoderOnly(depth),), depth)
    if keys.arch == "deepseek4":
        return Attention(_compressed(keys, depth), depth, drafting, ("laid out as in vLLM; llama.cpp pads more",))
    heads = keys.each(("attention.head_count_kv", "attention.head_count"), depth, default=0)
    windows = windows_of(keys, depth)
    states = recurrent_layers(keys, heads)
    _sound(keys, heads, states)
    kept = _own_caches(keys, depth)
    found: list[AttentionLayers] = []
    for layer in range(depth):
        if layer >= kept:
            found.append(KvShared(1))
            continue
        if states[layer]:
            found.extend(state_layers(keys))
        if heads[layer] and (not states[layer] or keys.arch in BESIDE_ATTENTION):
            found.append(_attention(keys, windows, layer, heads[layer]))
    found.extend(_index(keys, [layer for layer in range(depth) if heads[layer] and not states[layer]]))
    return Attention(tuple(found), depth, drafting, _caveats(keys, windows))


def _sound(keys: GgufKeys, heads: tuple[int, ...], states: tuple[bool, ...]) -> None:
    """Refuse a model without heads where nothing else keeps the past, and more KV heads than query heads."""
    if not any(heads) and not any(states):
        raise ModelFileError(f"{keys.spelled('attention.head_count')} must be at least 1")
    if keys.get("attention.head_count") is None:
        return
    asking = keys.each(("attention.head_count",), len(heads))
    for layer, (kept, asked) in enumerate(zip(heads, asking, strict=True)):
        if kept > asked and not states[layer]:
            told = f"{keys.spelled('attention.head_count_kv')} is {kept}, and attention.head_count {asked}"
            raise ModelFileError(f"{told}: no layer has more KV heads than query heads")


def _attention(keys: GgufKeys, windows: Windows, layer: int, heads: int) -> AttentionLayers:
    latent = keys.whole("attention.key_length_mla", default=0)
    if latent and keys.whole("attention.kv_lora_rank", default=0):
        rank, row = keys.positive("attention.kv_lora_rank"), keys.positive("attention.key_length")
        return Mla(1, rank, max(0, row - rank))
    wide, narrow = _dims(keys)
    if not windows.sliding[layer]:
        return FullGqa(1, heads, wide, None if narrow == wide else narrow)
    wide = keys.positive("attention.key_length_swa", default=wide)
    narrow = keys.positive("attention.value_length_swa", default=narrow)
    unlike = None if narrow == wide else narrow
    if windows.chunked:
        return ChunkedLocalGqa(1, heads, wide, windows.size, unlike)
    return SlidingGqa(1, heads, wide, windows.size, unlike)


def _dims(keys: GgufKeys) -> tuple[int, int]:
    """Elements of a key and of a value: stated, else the embedding over the query heads."""
    keys_dim, values_dim = (
        keys.whole("attention.key_length", default=0),
        keys.whole("attention.value_length", default=0),
    )
    if keys_dim and values_dim:
        return keys_dim, values_dim
    heads = keys.largest("attention.head_count")
    if not heads:
        raise ModelFileError(f"{keys.spelled('attention.head_count')} is missing")
    each = keys.positive("embedding_length") // heads
    return keys_dim or each, values_dim or each


def _own_caches(keys: GgufKeys, depth: int) -> int:
    shared = keys.whole("attention.shared_kv_layers", default=0)
    if keys.arch == "gemma4" and shared:
        if shared >= depth:
            raise ModelFileError(f"{keys.spelled('attention.shared_kv_layers')} is {shared} of {depth} layers")
        return depth - shared
    return _SHARING_FROM.get(keys.arch, depth)


def _index(keys: GgufKeys, attending: list[int]) -> list[AttentionLayers]:
    """Index keys of sparse attention, one head a token; llama.cpp stores them in 16 bit by default."""
    width = keys.whole("attention.indexer.key_length", default=0)
    if not width:
        return []
    if keys.arch == "minimax-m3":
        leading = keys.whole("leading_dense_block_count", default=0)
        chosen = sum(1 for layer in attending if layer >= leading)
    elif keys.arch in _INDEXED:
        types = keys.flags("attention.indexer.types", max(attending, default=-1) + 1)
        chosen = sum(1 for layer in attending if types is None or types[layer])
    else:
        return []
    return [DsaIndexer(chosen, 2 * width, keys.positive("attention.indexer.kpool", default=1))] if chosen else []


def _compressed(keys: GgufKeys, depth: int) -> tuple[AttentionLayers, ...]:
    wide, window = keys.positive("attention.key_length"), keys.positive("attention.sliding_window")
    index = keys.positive("attention.indexer.key_length")
    found: list[AttentionLayers] = []
    for ratio in keys.each(("attention.compress_ratios",), depth):
        found.append(SlidingMla(1, window, 2 * wide))
        if ratio:
            spans = 2 if ratio == 4 else 1
            found += [CompressedMla(1, ratio, 2 * wide), CompressorState(1, spans * ratio, 8 * spans * wide)]
            if ratio == 4:
                found += [DsaIndexer(1, 2 * index, ratio), CompressorState(1, spans * ratio, 8 * spans * index)]
    return tuple(found)


def _caveats(keys: GgufKeys, windows: Windows) -> tuple[str, ...]:
    found = []
    if windows.ignored:
        found.append(f"llama.cpp doesn't use the sliding window of {keys.arch}: every layer keeps all tokens")
    if keys.arch in _INDEXED or keys.arch == "minimax-m3":
        found.append("the index of sparse attention is stored as the KV cache is; here 16 bit are counted")
    return tuple(found)
