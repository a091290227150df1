"""A character that an engine divides between two events: each has half of a surrogate pair, which alone is nothing."""

from __future__ import annotations

import json
from typing import Any

from gateway.wire.engine_json import has_half

__all__ = ["Halves"]

_MOST_HELD = 16
"""Texts that may be in the middle of a character at once."""
_Path = tuple[str | int, ...]


class Halves:
    """Reads the events of one stream: the first half is kept back until the next piece of the same text comes.

    Texts are told apart by their place in the event. A half whose other never comes is no character; in front of
    another text it is written as U+FFFD, at the end of the stream not at all.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[_Path, str] = {}

    def joined(self, data: bytes) -> bytes:
        """The event's JSON with whole characters; as it came where none is divided, or where it is no JSON."""
        if not self._held and not has_half(data):
            return data
        try:
            value = self._walk(json.loads(data), ())
        except (ValueError, RecursionError):
            return data
        return json.dumps(value).encode()

    def _walk(self, value: Any, path: _Path) -> Any:
        if isinstance(value, dict):
            return {key: self._walk(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._walk(item, (*path, index)) for index, item in enumerate(value)]
        return self._text(value, path) if isinstance(value, str) and value else value

    def _text(self, text: str, path: _Path) -> str:
        text = self._held.pop(path, "") + text
        if "\ud800" <= text[-1] <= "\udbff" and len(self._held) < _MOST_HELD:
            self._held[path], text = text[-1], text[:-1]
        # Two halves that meet are one character in UTF-16, and what is left over is none.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
