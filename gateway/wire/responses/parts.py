"""The content of an item as parts of a chat message: text as str, everything else as the raw JSON of a part."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list

__all__ = ["SEPARATOR", "Part", "content_of", "content_parts", "text_of"]

SEPARATOR = "\n\n"
"""Between texts that become one: parts are paragraphs to a model."""
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_DETAILS = ("auto", "low", "high")
"""What chat knows; "original" is left out."""

Part = str | bytes


class _Kind(msgspec.Struct, gc=False):
    type: str


class _Text(msgspec.Struct, gc=False):
    text: str


class _Refusal(msgspec.Struct, gc=False):
    refusal: str


class _Image(msgspec.Struct, gc=False):
    image_url: str | None = None
    detail: str | None = None


class _File(msgspec.Struct, gc=False):
    file_data: str | None = None
    filename: str | None = None


class _Audio(msgspec.Struct, gc=False):
    audio_url: str | None = None
    input_audio: msgspec.Raw = NOTHING


_STRING = msgspec.json.Decoder(str)
_KIND = msgspec.json.Decoder(_Kind)
_TEXT = msgspec.json.Decoder(_Text)
_REFUSAL = msgspec.json.Decoder(_Refusal)
_IMAGE = msgspec.json.Decoder(_Image)
_FILE = msgspec.json.Decoder(_File)
_AUDIO = msgspec.json.Decoder(_Audio)


def content_parts(raw: msgspec.Raw, path: str, lost: Lost) -> list[Part]:
    """The parts of a `content` or `output`, a string or a list; empty text gives none. Raises MalformedRequest."""
    if is_null(raw):
        return []
    if first_byte(raw) == b'"':
        text = read(_STRING, raw, path)
        return [text] if text else []
    if first_byte(raw) != b"[":
        raise MalformedRequest(f"{path} must be text or a list of parts", param=path)
    parts: list[Part] = []
    for index, item in enumerate(read_list(raw, path)):
        part = _part(item, f"{path}[{index}]", lost)
        if part:
            parts.append(part)
    return parts


def _part(item: msgspec.Raw, path: str, lost: Lost) -> Part | None:
    kind = read(_KIND, item, path).type
    if kind in _TEXTS:
        return read(_TEXT, item, path).text
    if kind == "refusal":
        return read(_REFUSAL, item, path).refusal
    if kind == "input_image":
        image = read(_IMAGE, item, path)
        if image.image_url is None:  # a file that was uploaded before
            lost.add(f"{path}.file_id")
            return None
        detail = b',"detail":' + encode(image.detail) if image.detail in _DETAILS else b""
        return b'{"type":"image_url","image_url":{"url":' + encode(image.image_url) + detail + b"}}"
    if kind == "input_file":
        file = read(_FILE, item, path)
        if file.file_data is None:
            lost.add(f"{path}.type=input_file")
            return None
        name = b"" if file.filename is None else b'"filename":' + encode(file.filename) + b","
        return b'{"type":"file","file":{' + name + b'"file_data":' + encode(file.file_data) + b"}}"
    if kind == "input_audio":
        audio = read(_AUDIO, item, path)
        if audio.audio_url is not None:
            return b'{"type":"audio_url","audio_url":{"url":' + encode(audio.audio_url) + b"}}"
        return b'{"type":"input_audio","input_audio":' + (bytes(audio.input_audio) or b"{}") + b"}"
    lost.add(f"{path}.type={kind[:40]}")
    return None


def content_of(parts: list[Part]) -> bytes:
    """The raw JSON of a chat message's `content`: one string where all is text, since every engine takes that."""
    texts = text_of(parts)
    if texts is not None:
        return encode(texts)
    return b"[" + b",".join(_raw(part) for part in parts) + b"]"


def text_of(parts: list[Part]) -> str | None:
    """The parts as one text; None where something else is among them."""
    texts = [part for part in parts if isinstance(part, str)]
    return SEPARATOR.join(texts) if len(texts) == len(parts) else None


def _raw(part: Part) -> bytes:
    return b'{"type":"text","text":' + encode(part) + b"}" if isinstance(part, str) else part
