"""The tables of `kvgate top`: no lines, quiet heads, one line a row whatever the width."""

from __future__ import annotations

from typing import NamedTuple

from rich.table import Table

__all__ = ["Column", "table"]


class Column(NamedTuple):
    """A column's head. `widest` cells at most; one that `fills` takes the room that others leave, from `least` on."""

    head: str
    right: bool = False
    widest: int | None = None
    fills: bool = False
    least: int | None = None


def table(*columns: Column) -> Table:
    """An empty table of these columns."""
    made = Table(
        box=None, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0), collapse_padding=True, header_style="dim",
        expand=any(column.fills for column in columns),
    )  # fmt: skip
    for column in columns:
        made.add_column(
            column.head,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            max_width=column.widest,
            min_width=column.least,
            ratio=1 if column.fills else None,
        )
    return made
