"""Tables whose names and numbers stay whole: closer columns, then a second line in a cell, before anything is cut."""

from __future__ import annotations

from collections.abc import Callable

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["empty_table", "fitted"]

_GAPS = ((0, 1), (0, 0, 0, 1), (0, 0))
"""Padding of cells, which with the line between columns parts them by three blanks, two, or one."""


def empty_table(*columns: tuple[str, str]) -> Table:
    """A table of (heading, "right" or "") columns, none of which wraps."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=_GAPS[0], header_style="dim")
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    return table


def fitted(console: Console, build: Callable[[bool], Table], indent: int = 2) -> Table:
    """`build(False)` where it fits beside `indent` columns, else `build(True)`, its narrow form, as wide as can be."""
    table = build(False)
    if _width(console, table) + indent <= console.width:
        return table
    table = build(True)
    for gap in _GAPS:
        table.padding = gap
        if _width(console, table) + indent <= console.width:
            break
    return table


def _width(console: Console, table: Table) -> int:
    return console.measure(table, options=console.options.update(width=10_000)).maximum
