"""The terminal: names and messages of files, engines and clients reach it as text, never as commands to it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from gateway.cli.printable import printable

__all__ = ["Terminal"]


class Terminal(Console):
    """rich's console; whatever is printed on it is made `printable`, its own colours and cursor moves excepted."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments of something printed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
