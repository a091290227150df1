"""Lines of the arithmetic, to be printed and checked by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gateway.core.kv.layer_spec import Kind, LayerSpec

__all__ = ["Step", "layer_steps"]


class Step(NamedTuple):
    """`label`: what is computed; `formula`: with the numbers put in; `value` in `unit` (bytes, tokens, blocks)."""

    label: str
    formula: str
    value: float
    unit: str


def layer_steps(specs: Iterable[LayerSpec]) -> Iterator[Step]:
    """One line for each kind of layer: what it stores in one layer on one rank."""
    for spec in specs:
        label = f"{spec.name}, {spec.layers} layers"
        if spec.kind is Kind.STATE:
            yield Step(label, spec.formula, spec.state_bytes, "bytes a request and layer")
        elif spec.kind is Kind.GROWING:
            yield Step(label, spec.formula, spec.token_bytes, "bytes a token and layer")
        else:
            formula = f"{spec.formula}, for {spec.window} tokens"
            yield Step(label, formula, spec.token_bytes, "bytes a token and layer")
