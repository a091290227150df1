"""A prompt as counts of byte classes: all that a token estimate needs of its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["TextCounts", "count_text"]

_LETTERS = bytes(range(65, 91)) + bytes(range(97, 123)) + b" "
_DIGITS = b"0123456789"
_HIGH = bytes(range(128, 256))


@dataclass(frozen=True, slots=True)
class TextCounts:
    """A prompt as counts: bytes of each class, and items that a template wraps in tokens of its own."""

    letters: int
    """ASCII letters and spaces."""
    digits: int
    other: int
    """Other ASCII: punctuation, line ends, control."""
    non_ascii: int
    """Bytes above 127."""
    messages: int = 0
    tools: int = 0

    @property
    def bytes(self) -> int:
        """All bytes counted."""
        return self.letters + self.digits + self.other + self.non_ascii

    def minus(self, earlier: TextCounts) -> TextCounts:
        """What comes after `earlier` in a prompt that starts with it."""
        return TextCounts(
            self.letters - earlier.letters,
            self.digits - earlier.digits,
            self.other - earlier.other,
            self.non_ascii - earlier.non_ascii,
            self.messages - earlier.messages,
            self.tools - earlier.tools,
        )


def count_text(pieces: Sequence[bytes], messages: int = 0, tools: int = 0) -> TextCounts:
    """Count byte classes by deletion, the most frequent class first; about 1 ms a MB."""
    text = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    rest = text.translate(None, _LETTERS)
    letters = len(text) - len(rest)
    text = rest.translate(None, _DIGITS)
    digits = len(rest) - len(text)
    other = len(text) if text.isascii() else len(text.translate(None, _HIGH))
    non_ascii = len(text) - other
    return TextCounts(letters, digits, other, non_ascii, messages, tools)
