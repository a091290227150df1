"""Lines of arithmetic as a table: what, how, and the value in a unit that is easy to read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.table import Table

from gateway.cli.check_view import size_text
from gateway.core.kv.steps import Step

__all__ = ["POOL", "arithmetic"]

POOL = "KV pool"
"""The line that is shown though it be zero."""
_LONG_NUMBER = re.compile(r"(?<![\d.,])\d{4,}(?![\d.])")
_ONE_OF_MANY = re.compile(r"(?<![\d.,])1 (block|slot|request|layer|head|state|token)s\b")
_MANY_BYTES = 10_240


def arithmetic(steps: Iterable[Step], *, counts: bool = False) -> Table:
    """A table of the steps; those that come to nothing are left out, but with `counts` not those that count things."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(ratio=None, overflow="fold")
    table.add_column(style="dim", overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    for step in steps:
        if step.value or step.label == POOL or (counts and not step.unit.startswith("bytes")):
            table.add_row(_grouped(step.label), _grouped(step.formula), _value(step))
    return table


def _grouped(formula: str) -> str:
    """A formula with its long numbers in groups of three digits, and of one thing no plural."""
    return _LONG_NUMBER.sub(lambda found: f"{int(found[0]):,}", _ONE_OF_MANY.sub(r"1 \1", formula))


def _value(step: Step) -> str:
    """Its value; many bytes in a larger unit."""
    kind, _, rest = step.unit.partition(" ")
    number = f"{step.value:,.0f}" if step.value == int(step.value) else f"{step.value:,.1f}"
    if kind != "bytes":
        return _ONE_OF_MANY.sub(r"1 \1", f"{number} {step.unit}")
    short = {"": "", "a token and layer": "/token", "a request and layer": "/request", "a slot": "/slot"}
    size = f"{number} B" if abs(step.value) < _MANY_BYTES else _signed(step.value)
    return size + short.get(rest, f" {rest}")


def _signed(size: float) -> str:
    return f"-{size_text(-size)}" if size < 0 else size_text(size)
