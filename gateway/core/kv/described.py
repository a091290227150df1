"""What a model's own file says of it: its shape, what its weights weigh, and what to know before trusting either."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.model import ModelShape

__all__ = ["DescribedModel", "ModelFileError", "gathered"]


class ModelFileError(ValueError):
    """A description of a model that can't be read; the message names the key."""


@dataclass(frozen=True, slots=True)
class DescribedModel:
    """A model read from its own file.

    `architecture`: what the file calls its kind. `weights_bytes`: 0 where not known; `weights_exact` when they are
    sizes of tensors and no estimate from the number format `weights_format`. `kv_dtype`: the KV cache format that the
    checkpoint asks for, None when it doesn't. `caveats`: sentences for a person. `chat_template`: whether the file has
    a template, None where it can't tell; `tokenizer`: its kind, "" where the file doesn't say.
    """

    shape: ModelShape
    architecture: str
    weights_bytes: int = 0
    weights_format: str = ""
    weights_exact: bool = False
    kv_dtype: KvDtype | None = None
    caveats: tuple[str, ...] = ()
    chat_template: bool | None = None
    tokenizer: str = ""


def gathered(layers: Iterable[AttentionLayers]) -> tuple[AttentionLayers, ...]:
    """Layers that cache alike as one value with their number, in the order of their first."""
    counts: dict[AttentionLayers, int] = {}
    for layer in layers:
        one = replace(layer, layers=1)  # type: ignore[type-var]
        counts[one] = counts.get(one, 0) + layer.layers
    return tuple(replace(one, layers=count) for one, count in counts.items())  # type: ignore[type-var]
