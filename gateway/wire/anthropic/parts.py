"""Blocks of a turn as parts of a chat message: text as str, everything else as the raw JSON of a part."""

from __future__ import annotations

import msgspec

from gateway.wire.anthropic.blocks import DOCUMENT, IMAGE, KIND, SEARCH_RESULT, TEXT, Source, image_url
from gateway.wire.lost import Lost
from gateway.wire.raw_members import encode, first_byte, is_null, read, read_list

__all__ = ["SEPARATOR", "Part", "content_of", "content_parts", "part_of"]

SEPARATOR = "\n\n"
"""Between texts that become one: blocks are paragraphs to a model."""
_DEEPEST = 2
"""A tool's result holds documents, and these hold text and pictures."""
_TEXT = msgspec.json.Decoder(str)

Part = str | bytes


def content_parts(raw: msgspec.Raw, path: str, lost: Lost, depth: int = 0) -> list[Part]:
    """The parts of a `content` that is text or a list of text, pictures and documents; `depth`: blocks around it."""
    if is_null(raw):
        return []
    if first_byte(raw) == b'"':
        text = read(_TEXT, raw, path)
        return [text] if text else []
    parts: list[Part] = []
    for index, block in enumerate(read_list(raw, path)):
        at = f"{path}[{index}]"
        parts += part_of(block, read(KIND, block, at).type, at, lost, depth)
    return parts


def part_of(block: msgspec.Raw, kind: str, path: str, lost: Lost, depth: int = 0) -> list[Part]:
    """The parts of one block that the user's side may hold; empty text gives none."""
    if kind == "text":
        text = read(TEXT, block, path).text
        return [text] if text else []
    if kind == "image":
        source = read(IMAGE, block, path).source
        return _image(source, f"{path}.source", lost)
    if kind == "document" and depth < _DEEPEST:
        document = read(DOCUMENT, block, path)
        head = [text for text in (document.title, document.context) if text]
        return [*head, *_document(document.source, f"{path}.source", lost, depth)]
    if kind == "search_result" and depth < _DEEPEST:
        result = read(SEARCH_RESULT, block, path)
        head = [text for text in (result.title, result.source) if text]
        return [*head, *content_parts(result.content, f"{path}.content", lost, depth + 1)]
    lost.add(f"{path}.type={kind[:40]}")
    return []


def _image(source: Source, path: str, lost: Lost) -> list[Part]:
    url = image_url(source)
    if url is None:
        lost.add(f"{path}.type={source.type[:40]}")
        return []
    return [b'{"type":"image_url","image_url":{"url":' + encode(url) + b"}}"]


def _document(source: Source, path: str, lost: Lost, depth: int) -> list[Part]:
    if source.type == "text":
        return [source.data] if source.data else []
    if source.type == "content":
        return content_parts(source.content, f"{path}.content", lost, depth + 1)
    # PDF: chat has a part for files, but local engines read none; links and files are fetched by Anthropic only
    lost.add(f"{path}.type={source.type[:40]}")
    return []


def content_of(parts: list[Part]) -> bytes:
    """The `content` of a chat message: one string where all is text, as every template takes it, else a list."""
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return encode(SEPARATOR.join(texts))
    return b"[" + b",".join(_text_part(part) if isinstance(part, str) else part for part in parts) + b"]"


def _text_part(text: str) -> bytes:
    return b'{"type":"text","text":' + encode(text) + b"}"
