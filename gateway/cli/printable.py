"""Text of files, engines and clients as text for a terminal, never as commands to it."""

from __future__ import annotations

__all__ = ["printable"]

_KEPT = "\n\t\xa0"
_SHOWN = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """The text with one sign in place of each character that moves, colours or hides what a terminal shows."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in _KEPT else _SHOWN for sign in text)
