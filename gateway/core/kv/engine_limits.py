"""What an engine refuses at start, whatever the memory: ways to split a model, number formats of its cache."""

from __future__ import annotations

from gateway.core.kv.grouped import ChunkedLocalGqa, FullGqa, SlidingGqa
from gateway.core.kv.linear_state import LightningAttention
from gateway.core.kv.model import ModelShape
from gateway.core.kv.recurrent import GatedDeltaNet, Kda, Mamba2

__all__ = ["refused_format", "refused_split", "splits"]

_BY_HEADS = ("vllm", "sglang")
"""Engines whose ranks each take the same whole number of heads. llama.cpp and Ollama split by layers or rows."""
_GGML_CACHES = frozenset(("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"))
_MOST = 64


def splits(model: ModelShape, tp: int) -> bool:
    """Whether `tp` ranks can each take a whole number of a model's heads, as far as those are known.

    Query heads and heads of recurrent states must be a multiple of `tp`; KV heads a multiple or, copied, a divisor.
    """
    if model.query_heads % tp:
        return False
    for layers in model.layers:
        match layers:
            case FullGqa() | SlidingGqa() | ChunkedLocalGqa():
                if max(layers.kv_heads, tp) % (min(layers.kv_heads, tp) or 1):
                    return False
            case GatedDeltaNet():
                if layers.k_heads % tp or layers.v_heads % tp:
                    return False
            case Kda() | LightningAttention() | Mamba2():
                if layers.heads % tp:
                    return False
            case _:
                continue
    return True


def refused_split(model: ModelShape, engine: str, tp: int, pp: int = 1) -> str:
    """Why the engine can't spread the model over `tp` times `pp` devices, and what works; "" when it can."""
    if engine not in _BY_HEADS:
        return ""
    if not splits(model, tp):
        works = [str(count) for count in range(1, _MOST + 1) if splits(model, count)]
        return f"{engine} can't split its heads over {tp} devices; tensor parallel works with {', '.join(works)}"
    if model.depth and pp > model.depth:
        return f"{engine} can't cut {model.depth} layers into {pp} stages; at most {model.depth} work"
    return ""


def refused_format(engine: str, name: str) -> str:
    """Why the engine has no KV cache of that number format (by its name), and what works; "" when it has."""
    if engine in _BY_HEADS and name.casefold() in _GGML_CACHES:
        return f"{engine} has no KV cache in {name}; auto (16 bit) and fp8 work"
    if engine in ("llama.cpp", "ollama") and (name.casefold().startswith("fp8") or name.casefold() == "nvfp4"):
        return f"{engine} has no KV cache in {name}; auto (16 bit), q8_0 and q4_0 work"
    return ""
