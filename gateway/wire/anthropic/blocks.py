"""The content blocks of messages that a translation reads.

A block is decoded by its type only, so that one of a type that nobody here knows may have any shape.
"""

from __future__ import annotations

import msgspec

from gateway.wire.raw_members import NOTHING

__all__ = [
    "DOCUMENT",
    "IMAGE",
    "KIND",
    "SEARCH_RESULT",
    "TEXT",
    "THINKING",
    "TOOL_RESULT",
    "TOOL_USE",
    "Source",
    "image_url",
]


class Kind(msgspec.Struct, gc=False):
    """What a block is."""

    type: str


class Text(msgspec.Struct, gc=False):
    """Text of either side."""

    text: str


class Thinking(msgspec.Struct, gc=False):
    """Reasoning of an earlier turn."""

    thinking: str = ""


class Source(msgspec.Struct, gc=False):
    """Where a picture or a document comes from; type is base64, url, text, content or file."""

    type: str
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    content: msgspec.Raw = NOTHING


class Image(msgspec.Struct, gc=False):
    """A picture."""

    source: Source


class Document(msgspec.Struct, gc=False):
    """A document: text, blocks, or a file."""

    source: Source
    title: str | None = None
    context: str | None = None


class SearchResult(msgspec.Struct, gc=False):
    """One result of the client's own search."""

    content: msgspec.Raw = NOTHING
    source: str | None = None
    title: str | None = None


class ToolUse(msgspec.Struct, gc=False):
    """A call that the assistant made."""

    id: str
    name: str
    input: msgspec.Raw = NOTHING


class ToolResult(msgspec.Struct, gc=False):
    """What a call gave."""

    tool_use_id: str
    content: msgspec.Raw = NOTHING
    is_error: bool | None = None


KIND = msgspec.json.Decoder(Kind)
TEXT = msgspec.json.Decoder(Text)
THINKING = msgspec.json.Decoder(Thinking)
IMAGE = msgspec.json.Decoder(Image)
DOCUMENT = msgspec.json.Decoder(Document)
SEARCH_RESULT = msgspec.json.Decoder(SearchResult)
TOOL_USE = msgspec.json.Decoder(ToolUse)
TOOL_RESULT = msgspec.json.Decoder(ToolResult)


def image_url(source: Source) -> str | None:
    """The picture as a URL for chat, or None when it is a file that only Anthropic keeps."""
    if source.type == "base64" and source.data is not None:
        return f"data:{source.media_type or 'image/png'};base64,{source.data}"
    return source.url if source.type == "url" else None
