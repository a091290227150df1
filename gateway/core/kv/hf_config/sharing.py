"""Weights that a model uses more than once: blocks shared by layers, one table for input and output."""

from __future__ import annotations

from gateway.core.kv.hf_config.attention import HIDDEN, head_dim, query_heads
from gateway.core.kv.hf_config.kinds import LayerKind
from gateway.core.kv.values import Values

__all__ = ["shared_blocks", "tied_by_family"]

_TIED_NAMES = """
bloom opt mpt gpt_bigcode gpt_neo falcon falcon_mamba mamba roberta xlm-roberta xlm-roberta-xl camembert distilbert
electra albert mpnet deberta deberta-v2 starcoder2 recurrent_gemma zamba zamba2 biogpt xglm minicpm modernbert
"""
_TIED = frozenset(_TIED_NAMES.split())


def tied_by_family(values: Values) -> bool:
    """Whether one table serves input and output where the config doesn't say: what each family's class assumes."""
    family = values.text("model_type")
    return family in _TIED or family.startswith(("gemma", "bert", "gpt2", "cohere", "command"))


def shared_blocks(values: Values, kinds: tuple[LayerKind, ...]) -> tuple[float, float]:
    """Weights there are, and weights read for one token, of Zamba's attention blocks that many layers use; else 0.

    A block sees the hidden state and the embedding side by side, and has its own feed-forward; each layer that uses
    it adds a projection, and with Zamba 2 adapters to the feed-forward and, if so configured, to the attention.
    """
    family = values.text("model_type")
    layers = sum(1 for kind in kinds if kind is LayerKind.PARALLEL)
    if family not in ("zamba", "zamba2") or not layers:
        return 0.0, 0.0
    hidden = values.positive(*HIDDEN)
    wide, inner = 2 * hidden, query_heads(values) * head_dim(values)
    width = values.stated("intermediate_size", "ffn_hidden_size", default=4 * hidden)
    block = float(3 * wide * inner + inner * hidden + 3 * hidden * width)
    each = float(hidden * hidden)
    if family == "zamba2":
        rank = values.stated("adapter_rank", default=128)
        each += rank * (hidden + 2 * width)
        if values.flag("use_shared_attention_adapter"):
            each += 3.0 * rank * (wide + inner)
    return min(values.stated("num_mem_blocks", default=1), layers) * block + layers * each, layers * (block + each)
