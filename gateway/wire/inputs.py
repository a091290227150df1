"""The texts of a request that decodes nothing: embeddings, reranking, tokenization.

Engines take a text, token ids, an object with a text or a picture in it, or a list of any of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import xxhash

from gateway.errors import MalformedRequest
from gateway.wire.chat_body import Part
from gateway.wire.media import media
from gateway.wire.rendered import render_part

__all__ = ["Given", "Inputs", "inputs"]

Thing: TypeAlias = dict[str, msgspec.Raw]
Item: TypeAlias = str | int | list[int | str | Thing] | Thing
Given: TypeAlias = str | list[Item] | Thing | None
"""What a member of texts may be; None is unsaid."""

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


def inputs(name: str, given: Given, most: int) -> Inputs:
    """Read the member `name`. A list of token ids is one input, and so is one of ids and texts mixed (llama.cpp).

    Raises MalformedRequest when nothing is given, or more than `most` inputs.
    """
    if given is None:
        raise MalformedRequest(f"{name} is required", param=name, code="missing_required_parameter")
    items = given if isinstance(given, list) else [given]
    if not items:
        raise MalformedRequest(f"{name} must not be empty", param=name)
    if any(isinstance(item, int) for item in items):
        return Inputs([msgspec.json.encode(items)], [len(items)] if _is_ids(items) else None, 0)
    if len(items) > most:
        raise MalformedRequest(f"{name} must not hold more than {most} inputs", param=name)
    tokens = [len(item) for item in items if isinstance(item, list) and _is_ids(item)]
    read = [_item(item) for item in items]
    return Inputs(
        [text for text, _ in read],
        tokens if len(tokens) == len(items) else None,
        sum(images for _, images in read),
    )


def _is_ids(items: Sequence[object]) -> bool:
    return all(isinstance(item, int) for item in items)


def _item(item: Item) -> tuple[bytes, int]:
    # The text of one input and the pictures in it.
    if isinstance(item, str):
        return item.encode(), 0
    if isinstance(item, dict):
        return _thing(item)
    if not isinstance(item, list) or _is_ids(item):
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
    return b"\n".join(texts), media([parts])[1]
