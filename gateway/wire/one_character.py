"""What a token event says, if that is one character and no more: an engine that is broken repeats it for ever."""

from __future__ import annotations

import re

__all__ = ["one_character"]

_TEXT = re.compile(rb'"(?:content|text|delta|reasoning_content|thinking|response)":\s?"((?:[^"\\]|\\.){1,64})"')
_USUAL = frozenset("0123456789-=_*.#~+|,;:'\"()[]{}<> \t\n\r\\")
"""Characters that rules, tables, matrices and blank space are made of: many of them are no fault."""


def one_character(event: bytes) -> str:
    """The character that the event's text consists of, be it once or several times; empty for any other text."""
    found = _TEXT.search(event)
    if found is None:
        return ""
    text = found[1].decode("utf-8", "replace")
    return text[0] if len(set(text)) == 1 and text[0] not in _USUAL else ""
