"""The terminal: names and messages of files, engines and clients reach it as text, never as commands to it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

__all__ = ["Terminal", "printable"]

_KEPT = "\n\t\xa0"
_SHOWN = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """The text with one sign in place of each character that moves, colours or hides what a terminal shows."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in _KEPT else _SHOWN for sign in text)


class Terminal(Console):
    """rich's console; whatever is printed on it is made `printable`, its own colours and cursor moves excepted."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments of something printed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
