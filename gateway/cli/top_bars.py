"""Bars of several parts that are as wide as the room they are given, and tell their parts apart without colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style

__all__ = ["Bar", "Part", "cells_of"]


class Part(NamedTuple):
    """One part of a bar: how much, the letter that fills it, and its style."""

    amount: float
    letter: str
    style: str


class Bar:
    """`parts` one after another; what is left of `whole` is filled with dots."""

    def __init__(self, parts: Sequence[Part], whole: float, *, least: int = 6, most: int = 48) -> None:
        self._parts = tuple(parts)
        self._whole = whole
        self._least = least
        self._most = most

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """One line, as wide as there is room."""
        width = min(options.max_width, self._most)
        left = width
        for part, cells in zip(
            self._parts, cells_of([each.amount for each in self._parts], self._whole, width), strict=True
        ):
            left -= cells
            yield Segment(part.letter * cells, Style.parse(part.style))
        yield Segment("·" * left, Style.parse("dim"))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """From the least to the most cells."""
        return Measurement(min(self._least, options.max_width), min(self._most, options.max_width))


def cells_of(amounts: Sequence[float], whole: float, width: int) -> list[int]:
    """Cells of each part of a bar of `width` cells that stands for `whole`; together never more than there are.

    What is more than nothing gets a cell, as far as there are any.
    """
    found: list[int] = []
    left = width
    for amount in amounts:
        cells = 0
        if amount > 0.0 and whole > 0.0:
            cells = max(1, round(width * min(1.0, amount / whole)))
        cells = min(cells, left)
        left -= cells
        found.append(cells)
    return found
