"""Pictures and sounds among the parts of messages: what a model must be able to take, and how many pictures."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.wire.chat_body import Part

__all__ = ["media"]

_VISION = frozenset({"image_url", "image", "input_image", "video_url"})
_AUDIO = frozenset({"input_audio", "audio_url"})


def media(contents: Iterable[list[Part | str]]) -> tuple[set[str], int]:
    """The needs ("vision", "audio") of these contents, and the number of pictures and videos in them."""
    needs: set[str] = set()
    images = 0
    for content in contents:
        for part in content:
            if isinstance(part, str) or part.type == "text":
                continue
            if part.type in _VISION:
                needs.add("vision")
                images += 1
            elif part.type in _AUDIO:
                needs.add("audio")
    return needs, images
