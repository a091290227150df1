"""One line of the arithmetic, to be printed and checked by hand."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Step"]


class Step(NamedTuple):
    """`label`: what is computed; `formula`: with the numbers put in; `value` in `unit` (bytes, tokens, blocks)."""

    label: str
    formula: str
    value: float
    unit: str
