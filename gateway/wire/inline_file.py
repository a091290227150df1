"""Files that come as base64 in a JSON string, alone or as a data URL: their first bytes, and how long they are.

Only as much is decoded as is asked for; the string itself is never unescaped or copied whole.
"""

from __future__ import annotations

import binascii

__all__ = ["InlineFile", "inline_file"]

_PREFIX = 512
"""Bytes in which a data URL says `;base64,`, and in which whatever follows a file's string ends."""
_KEYS = (b'"url"', b'"data"', b'"file_data"')
"""Members that hold a file, where it comes in an object."""


class InlineFile:
    """A file in a JSON value; `start` is where its base64 begins, `end` where the string ends."""

    __slots__ = ("_end", "_raw", "_start")

    def __init__(self, raw: memoryview, start: int, end: int) -> None:
        self._raw = raw
        self._start = start
        self._end = end

    @property
    def length(self) -> int:
        """Bytes of the file, about."""
        return (self._end - self._start) * 3 // 4

    def head(self, size: int) -> bytes:
        """The first `size` bytes of it, or what there is; empty for what is no base64."""
        # Twice as much as plain base64 has: some writers escape every slash, or break lines.
        text = bytes(self._raw[self._start : min(self._end, self._start + size * 8 // 3 + 8)])
        if b"\\" in text:
            text = text.replace(b"\\/", b"/").replace(b"\\n", b"").replace(b"\\r", b"")
        text = text.translate(None, b"\r\n \\").replace(b"-", b"+").replace(b"_", b"/").rstrip(b"=")
        if len(text) % 4 == 1:  # cut within an escape, or no base64
            text = text[:-1]
        try:
            return binascii.a2b_base64(text + b"=" * (-len(text) % 4))[:size]
        except binascii.Error:
            return b""


def inline_file(raw: memoryview) -> InlineFile | None:
    """The file in a raw JSON value: a string, or an object with one; None for a URL to elsewhere, or nothing."""
    head = bytes(raw[:_PREFIX])
    start, data_url = 0, False
    if head.startswith(b"{"):
        at = min((found for key in _KEYS if (found := head.find(key)) >= 0), default=-1)
        if at < 0:
            return None
        start = head.find(b":", at) + 1
    opening = head.find(b'"', start)
    if opening < 0 or head[start:opening].strip():
        return None
    start = opening + 1
    if head.startswith(b"data:", start):
        comma = head.find(b",", start)
        if comma < 0 or not head.endswith(b";base64", start, comma):
            return None
        start, data_url = comma + 1, True
    if not data_url and b"://" in head[start : start + 16].replace(b"\\/", b"/"):
        return None
    end = _closing(raw, start)
    return InlineFile(raw, start, end)


def _closing(raw: memoryview, start: int) -> int:
    """Where the string ends, about: its quote is looked for only near the end, behind which no more than a few short
    members come. Base64 holds no quote."""
    near = max(start, len(raw) - _PREFIX)
    found = bytes(raw[near:]).find(b'"')
    return near + found if found >= 0 else len(raw)
