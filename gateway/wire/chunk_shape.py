"""The shape that the middle chunks of one stream share, so that most of them are known by their ends alone.

An engine writes every middle chunk alike but for the text: `{prefix}text{suffix}`. When both ends match, nothing but
the text can differ, so the chunk needs no look inside. llama.cpp's suffix holds `created` and so changes every second;
with logprobs no two chunks have the same end, and learning stops.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["ChunkShape", "is_middle"]

_TEXT = re.compile(rb'"(?:content|reasoning_content|reasoning|text|thinking|partial_json)"\s*+:\s*+"')
_STRING_END = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_PATIENCE = 4
"""Shapes to learn in vain before giving up."""


class ChunkShape:
    """Learns the ends of a middle chunk and recognises others by them; `rename` gives an end as the client sees it."""

    __slots__ = ("_misses", "_prefix", "_renamed", "_shortest", "_shown_prefix", "_shown_suffix", "_suffix")

    def __init__(self) -> None:
        self._prefix = self._suffix = self._shown_prefix = self._shown_suffix = b""
        self._shortest = 0  # 0: nothing learned yet
        self._renamed = False
        self._misses = 0

    def match(self, event: bytes) -> bytes | None:
        """The event as the client sees it when it is a middle chunk with text, else None."""
        if not self._shortest or len(event) <= self._shortest:
            return None
        if event.startswith(self._prefix) and event.endswith(self._suffix):
            self._misses = 0
            if not self._renamed:
                return event
            text = event[len(self._prefix) : len(event) - len(self._suffix)]
            return self._shown_prefix + text + self._shown_suffix
        return None

    def learn(self, event: bytes, rename: Callable[[bytes], bytes] | None) -> None:
        """Take the ends of a middle chunk (text, no finish_reason) that was looked at in full."""
        if self._misses >= _PATIENCE:
            return
        self._misses += 1
        texts = _TEXT.findall(event)
        start = _TEXT.search(event)
        if len(texts) != 1 or start is None:
            return
        end = _STRING_END.match(event, start.end())
        if end is None:
            return
        self._prefix, self._suffix = event[: start.end()], event[end.end() - 1 :]
        self._shortest = len(self._prefix) + len(self._suffix)
        self._shown_prefix, self._shown_suffix = self._prefix, self._suffix
        self._renamed = rename is not None
        if rename is not None:
            self._shown_prefix, self._shown_suffix = rename(self._prefix), rename(self._suffix)


def is_middle(event: bytes) -> bool:
    """Whether the event is surely a middle chunk: no end, no role, no error, no figures in it.

    False sends it to a full look, so a false alarm costs one JSON parse and nothing else.
    """
    return (
        event.startswith(b"data: {")
        and b'"finish_reason":null' in event
        and b'"finish_reason":"' not in event
        and b'"error"' not in event
        and b'"timings"' not in event
        and b'"role"' not in event
        and (b'"usage"' not in event or b'"usage":null' in event)
    )
