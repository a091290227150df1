"""Width and height of a picture, by the head of its file. Nothing is ever decoded but a few bytes.

PNG: IHDR comes first (W3C PNG, 5.6). JPEG: the first frame header, SOF0 to SOF15 without DHT, JPG and DAC (ITU T.81).
GIF: the logical screen. BMP: the info header. WebP: VP8, VP8L or VP8X, which comes first (RFC 9649).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = ["MOST_PIXELS", "More", "Size", "size_in"]

MOST_PIXELS = 65_535
"""Pixels a side; what says more is not believed: no engine takes it, and it would make a prompt of any length."""
_MOST_SEGMENTS = 64
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE = frozenset((0x01, *range(0xD0, 0xD8)))
"""Markers without a segment."""
_PNG = b"\x89PNG\r\n\x1a\n"


class Size(NamedTuple):
    """Pixels."""

    width: int
    height: int


class More(NamedTuple):
    """The size is further on: so many bytes from the start of the file are needed at least."""

    needed: int


def size_in(head: bytes) -> Size | More | None:
    """The size that the first bytes of a picture tell; None for what is no picture that is known."""
    if head.startswith(_PNG):
        return _fixed(head, 24, ">16xII")
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head)
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _fixed(head, 10, "<6xHH")
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp(head)
    if head.startswith(b"BM"):
        return _bmp(head)
    return More(32) if len(head) < 12 and head else None


def _believed(width: int, height: int) -> Size | None:
    return Size(width, height) if 0 < width <= MOST_PIXELS and 0 < height <= MOST_PIXELS else None


def _fixed(head: bytes, needed: int, form: str) -> Size | More | None:
    return _believed(*struct.unpack_from(form, head)) if len(head) >= needed else More(needed)


def _bmp(head: bytes) -> Size | More | None:
    if len(head) < 26:
        return More(26)
    if head[14:18] == b"\x0c\x00\x00\x00":  # OS/2's short header
        return _believed(*struct.unpack_from("<HH", head, 18))
    width, height = struct.unpack_from("<ii", head, 18)
    return _believed(abs(width), abs(height))  # negative: rows from the top


def _webp(head: bytes) -> Size | More | None:
    if len(head) < 30:
        return More(30)
    kind = head[12:16]
    if kind == b"VP8X":
        return _believed(1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little"))
    if kind == b"VP8L" and head[20] == 0x2F:
        packed = int.from_bytes(head[21:25], "little")
        return _believed(1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF))
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", head, 26)
        return _believed(width & 0x3FFF, height & 0x3FFF)
    return None


def _jpeg(head: bytes) -> Size | More | None:
    at = 2
    for _ in range(_MOST_SEGMENTS):
        while at + 1 < len(head) and head[at] == head[at + 1] == 0xFF:
            at += 1  # fill bytes
        if at + 4 > len(head):
            return More(at + 16)
        if head[at] != 0xFF:
            return None
        marker = head[at + 1]
        if marker in _ALONE:
            at += 2
            continue
        if marker in _FRAMES:
            if at + 9 > len(head):
                return More(at + 9)
            height, width = struct.unpack_from(">HH", head, at + 5)
            return _believed(width, height)  # a height of 0 comes later (DNL); nobody writes that
        if marker in (0xD9, 0xDA):  # end, or pixels without a frame
            return None
        length = struct.unpack_from(">H", head, at + 2)[0]
        if length < 2:
            return None
        at += 2 + length
    return None
