"""The texts of a request that decodes nothing: embeddings, reranking, tokenization.

Engines take a text, token ids, an object with a text or a picture in it, or a list of any of these. Token ids are
counted without making a number of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import xxhash

from gateway.errors import MalformedRequest
from gateway.wire.chat_body import NOTHING, Part
from gateway.wire.malformed import decoded
from gateway.wire.media import media
from gateway.wire.rendered import render_part

__all__ = ["Inputs", "inputs", "is_unsaid"]

Thing: TypeAlias = dict[str, msgspec.Raw]
Item: TypeAlias = str | int | list[int | str | Thing] | Thing

_GIVEN = msgspec.json.Decoder(str | list[Item] | Thing)
_STRING = msgspec.json.Decoder(str)
_PARTS = msgspec.json.Decoder(list[Part | str])
_TEXTS = ("text", "prompt_string", "content")
_PICTURES = ("image", "image_url", "video", "video_url", "multimodal_data")


@dataclass(frozen=True, slots=True)
class Inputs:
    """texts: what each input is counted by, in order. tokens: of each input, exact; None unless all are token ids."""

    texts: list[bytes]
    tokens: list[int] | None
    images: int

    def joined(self) -> Inputs:
        """The same as one input: a text that came in parts."""
        return Inputs([b"\n".join(self.texts)], None if self.tokens is None else [sum(self.tokens)], self.images)


def is_unsaid(raw: msgspec.Raw) -> bool:
    """Whether a member is absent or null."""
    return raw is NOTHING or bytes(raw) == b"null"


def inputs(name: str, raw: msgspec.Raw, most: int) -> Inputs:
    """Read the member `name`. A list of token ids is one input, and so is one of ids and texts mixed (llama.cpp).

    Raises MalformedRequest when nothing is given, what is no input, or more than `most` of them.
    """
    if is_unsaid(raw):
        raise MalformedRequest(f"{name} is required", param=name, code="missing_required_parameter")
    data = bytes(raw)
    found = _ids(data)
    if found is None:
        given = decoded(_GIVEN, data, name)
        items = given if isinstance(given, list) else [given]
        if not items:
            raise MalformedRequest(f"{name} must not be empty", param=name)
        if any(isinstance(item, int) for item in items):
            return Inputs([data], None, 0)
        if len(items) <= most:
            read = [_item(item) for item in items]
            return Inputs([text for text, _ in read], None, sum(images for _, images in read))
    elif len(found.texts) <= most:
        return found
    raise MalformedRequest(f"{name} must not hold more than {most} inputs", param=name)


def _ids(data: bytes) -> Inputs | None:
    # One list of token ids or several, of which nothing but brackets, commas and digits is left; else None.
    if not data.startswith(b"[") or b'"' in data:
        return None
    data = data.translate(None, b" \t\r\n")
    if data == b"[]" or data.translate(None, b"0123456789-,[]"):
        return None
    lists = data.count(b"[") - 1
    if not lists:
        return Inputs([data], [data.count(b",") + 1], 0)
    if not (data.startswith(b"[[") and data.endswith(b"]]") and data.count(b"],[") == lists - 1):
        return None  # numbers among the lists, or lists in them
    texts = data[2:-2].split(b"],[")
    if any(b"[" in text for text in texts):
        return None
    return Inputs([b"[" + text + b"]" for text in texts], [text.count(b",") + bool(text) for text in texts], 0)


def _item(item: Item) -> tuple[bytes, int]:
    # The text of one input and the pictures in it.
    if isinstance(item, str):
        return item.encode(), 0
    if isinstance(item, dict):
        return _thing(item)
    if not isinstance(item, list) or all(isinstance(part, int) for part in item):
        return msgspec.json.encode(item), 0
    read = [_item(part) for part in item]
    return b"\n".join(text for text, _ in read), sum(images for _, images in read)


def _thing(thing: Thing) -> tuple[bytes, int]:
    texts: list[bytes] = []
    images = 0
    for name in _TEXTS:
        if name in thing:
            text, pictures = _loose(bytes(thing[name]))
            texts.append(text)
            images += pictures
    for name in _PICTURES:
        if name in thing:
            texts.append(f"<{name} {xxhash.xxh3_64_hexdigest(memoryview(thing[name]))}>".encode())
            images += 1
    if not texts:  # a document of fields (Cohere): all of them are shown to the model
        texts = [_loose(bytes(raw))[0] for raw in thing.values()]
    return b"\n".join(texts), images


def _loose(data: bytes) -> tuple[bytes, int]:
    if data.startswith(b'"'):
        return _STRING.decode(data).encode(), 0
    if data == b"null":
        return b"", 0
    try:
        parts = _PARTS.decode(data)
    except msgspec.MsgspecError:
        return data, 0  # not the usual shape: the engine will say what it thinks of it
    texts = [part.encode() if isinstance(part, str) else render_part(part) for part in parts]
    return b"\n".join(texts), len(media([parts])[1].pictures)
