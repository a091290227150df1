"""Pictures, sounds and documents among the parts of messages: what a model must be able to take, and how much it is.

The heads of inline files are read for sizes and seconds; nothing is decoded further, and nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gateway.core.media import NO_MEDIA, Media, Picture
from gateway.wire.audio_length import seconds_of_head
from gateway.wire.chat_body import NOTHING, Part
from gateway.wire.image_size import More, size_in
from gateway.wire.inline_file import InlineFile, inline_file

__all__ = ["media"]

_PICTURES = frozenset({"image_url", "image", "input_image"})
_VIDEOS = frozenset({"video_url"})
_AUDIO = frozenset({"input_audio", "audio_url"})
_HEADS = (512, 8 * 1024, 128 * 1024, 512 * 1024)
"""Bytes of a picture that are decoded to find its size: JPEGs may have previews and colour profiles before it."""
_SOUND_HEAD = 4 * 1024
_UNKNOWN_SECONDS = 30.0
"""A sound that only an engine fetches: what most encoders take at once."""
_PAGE_BYTES = 64 * 1024
"""Of a PDF: pages of text have 20 to 50 kB, scans 100 and more."""
_DETAIL = 64
"""Bytes at the ends of an object in which its `detail` stands, beside a long URL."""


def media(contents: Iterable[list[Part | str]]) -> tuple[set[str], Media]:
    """The needs ("vision", "audio") of these contents, and what of pictures, sounds and documents is in them.

    A video counts as one picture of no known size.
    """
    needs: set[str] = set()
    pictures: list[Picture] = []
    seconds, pages = 0.0, 0
    for content in contents:
        for part in content:
            if isinstance(part, str) or part.type == "text":
                continue
            if part.type in _PICTURES:
                needs.add("vision")
                pictures.append(_picture(part.image_url if part.image_url is not NOTHING else part.image))
            elif part.type in _VIDEOS:
                needs.add("vision")
                pictures.append(Picture())
            elif part.type in _AUDIO:
                needs.add("audio")
                seconds += _seconds(part.input_audio if part.input_audio is not NOTHING else part.audio_url)
            elif part.type == "file" and part.file is not NOTHING:
                pages += _pages(part.file)
    if not (pictures or seconds or pages):
        return needs, NO_MEDIA
    return needs, Media(tuple(pictures), seconds, pages)


def _picture(raw: msgspec.Raw) -> Picture:
    view = memoryview(raw)
    ends = bytes(view[:_DETAIL]) + bytes(view[-_DETAIL:])
    low = b'"detail"' in ends and b'"low"' in ends
    file = inline_file(view)
    size = _size(file) if file is not None else None
    return Picture(*size, low) if size is not None else Picture(low=low)


def _size(file: InlineFile) -> tuple[int, int] | None:
    for length in _HEADS:
        head = file.head(length)
        found = size_in(head)
        if not isinstance(found, More):
            return found
        if len(head) < length or found.needed > _HEADS[-1]:
            return None
    return None


def _seconds(raw: msgspec.Raw) -> float:
    file = inline_file(memoryview(raw))
    return seconds_of_head(file.head(_SOUND_HEAD), file.length) if file is not None else _UNKNOWN_SECONDS


def _pages(raw: msgspec.Raw) -> int:
    file = inline_file(memoryview(raw))
    return 1 if file is None else 1 + file.length // _PAGE_BYTES
