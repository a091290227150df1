"""A GGUF header to a model's shape, with weights counted from its tensors."""

from __future__ import annotations

from collections import Counter

from gateway.core.kv.described import DescribedModel, ModelFileError, gathered
from gateway.core.kv.gguf.attention import layers_of
from gateway.core.kv.gguf.header import GgufHeader, LongArray
from gateway.core.kv.gguf.keys import GgufKeys
from gateway.core.kv.gguf.tensor_types import TENSOR_TYPES
from gateway.core.kv.model import ModelShape

__all__ = ["model_from_gguf"]

_INPUT = ("token_embd.weight", "per_layer_token_embd.weight")
_OUTPUT = "output.weight"
_ROUTED = ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_up_exps")


def model_from_gguf(header: GgufHeader, *, name: str = "") -> DescribedModel:
    """The model in a GGUF file; `name` is its id if the file has no name of its own.

    Raises ModelFileError naming the key that is missing, wrong, or contradicts another.
    """
    keys = GgufKeys(header.metadata)
    if keys.arch in ("clip", "mmproj"):
        raise ModelFileError(f"general.architecture is {keys.arch}: an image encoder, not a language model")
    attention = layers_of(keys)
    experts, per_token = keys.whole("expert_count", default=0), keys.largest("expert_used_count")
    named = header.metadata.get("general.name")
    total, read, routed = _weights(header, experts, per_token)
    shape = ModelShape(
        id=name or (named if isinstance(named, str) and named else keys.arch),
        layers=gathered(attention.layers),
        family=keys.arch,
        params_total=total,
        params_active=read,
        read_params=read,
        expert_params=routed,
        experts=experts,
        experts_per_token=per_token,
        max_context=keys.whole("context_length", default=0),
        hidden=keys.whole("embedding_length", default=0),
        depth=attention.depth,
        vocab=_vocabulary(header, keys),
        draft_layers=attention.drafting,
        query_heads=keys.largest("attention.head_count"),
        source="its GGUF header",
    )
    missing = (f"{header.missing} of {header.parts} parts are not here: weights are of the others",)
    tokenizer = header.metadata.get("tokenizer.ggml.model")
    return DescribedModel(
        shape,
        architecture=keys.arch,
        weights_bytes=sum(tensor.bytes for tensor in header.tensors),
        weights_format=_format(header),
        weights_exact=not header.missing,
        caveats=attention.caveats + (missing if header.missing else ()),
        chat_template="tokenizer.chat_template" in header.metadata,
        tokenizer=tokenizer if isinstance(tokenizer, str) else "",
    )


def _weights(header: GgufHeader, experts: int, per_token: int) -> tuple[float, float, float]:
    """Numbers of weights: all, those read for one token, those of all routed experts."""
    total = routed = 0
    table = 0
    tied = True
    for tensor in header.tensors:
        total += tensor.elements
        if any(part in tensor.name for part in _ROUTED):
            routed += tensor.elements
        elif tensor.name in _INPUT:
            table += tensor.elements if tensor.name != _INPUT[0] else 0
        tied = tied and tensor.name != _OUTPUT
    embedding = next((tensor.elements for tensor in header.tensors if tensor.name == _INPUT[0]), 0)
    share = per_token / experts if experts > per_token > 0 else 1.0
    idle = table + (0 if tied else embedding)
    return float(total), float(total - idle) - routed * (1.0 - share), float(routed)


def _format(header: GgufHeader) -> str:
    """The number format that most weights have, by its usual name."""
    counts: Counter[int] = Counter()
    for tensor in header.tensors:
        counts[tensor.kind] += tensor.elements
    if not counts:
        return ""
    kind = counts.most_common(1)[0][0]
    return TENSOR_TYPES[kind][0] if kind in TENSOR_TYPES else f"type {kind}"


def _vocabulary(header: GgufHeader, keys: GgufKeys) -> int:
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, LongArray):
        return tokens.length
    return len(tokens) if isinstance(tokens, tuple) else keys.whole("vocab_size", default=0)
