"""Embeddings: /api/embed and the older /api/embeddings over /v1/embeddings, and the other way round.

Numbers pass over as they are written. OpenAI's API can't cut inputs (`truncate`), which Ollama does unless it is told
not to: an input that is too long is an error here.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.errors import MalformedRequest, StreamBroken
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_client, read_list, read_members
from gateway.wire.translation import Stamp, Translated

__all__ = ["Embedding", "from_openai", "ollama_answer", "openai_answer", "to_openai"]

_STRING = msgspec.json.Decoder(str)
_INTEGER = msgspec.json.Decoder(int)
_FLOATS: msgspec.json.Decoder[list[float]] = msgspec.json.Decoder(list[float])
_OF_NUMBERS = b"0123456789+-.eE, \t\r\n"
"""What is left out of numbers leaves nothing: a megabyte of them is checked in a millisecond."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """What the answer's translation must know: single (Ollama's old API) or base64 (OpenAI's) was asked for."""

    single: bool = False
    base64: bool = False


class _Item(msgspec.Struct, gc=False):
    embedding: msgspec.Raw
    index: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None


class _OpenAI(msgspec.Struct):
    data: list[_Item]
    usage: _Usage | None = None


class _Ollama(msgspec.Struct):
    embeddings: list[msgspec.Raw] | None = None
    embedding: msgspec.Raw = NOTHING
    prompt_eval_count: int | None = None


_OPENAI = msgspec.json.Decoder(_OpenAI)
_OLLAMA = msgspec.json.Decoder(_Ollama)


def to_openai(body: bytes) -> Translated:
    """A body of /api/embed, or of /api/embeddings (`prompt`, one text), as one of /v1/embeddings.

    The context is `Embedding`. Left out: truncate, options, keep_alive. Raises MalformedRequest with `param`; also
    without any input, which asks to load a model (`load.py`).
    """
    members = read_client(body)
    out = _model(members)
    single = "prompt" in members and "input" not in members
    name = "prompt" if single else "input"
    if name not in members:
        raise MalformedRequest("input is required", param="input", code="missing_required_parameter")
    value = members[name]
    texts = [value] if first_byte(value) == b'"' else ([] if single else read_list(value, name))
    for index, item in enumerate(texts):
        read(_STRING, item, name if item is value else f"{name}[{index}]")
    if not texts or bytes(value) == b'""':
        raise MalformedRequest(f"{name} must not be empty", param=name)
    out["input"] = bytes(value)
    if "dimensions" in members and (size := read(_INTEGER, members["dimensions"], "dimensions")) > 0:
        out["dimensions"] = b"%d" % size
    return Translated(_object(out), (), Embedding(single=single))


def ollama_answer(body: bytes, context: object, stamp: Stamp) -> bytes:
    """An answer of /v1/embeddings as Ollama's. Raises StreamBroken for what is none."""
    told = _read(_OPENAI, body)
    vectors = [item.embedding for item in sorted(told.data, key=lambda item: item.index or 0)]
    if not vectors:
        raise StreamBroken("the engine's answer has no embeddings")
    numbers = [_numbers(vector) for vector in vectors]
    if isinstance(context, Embedding) and context.single:
        return b'{"embedding":' + numbers[0] + b"}"
    tokens = told.usage.prompt_tokens if told.usage is not None else None
    figures = encode({"total_duration": 0, "load_duration": 0, "prompt_eval_count": tokens or 0})
    return b'{"model":' + encode(stamp.model) + b',"embeddings":[' + b",".join(numbers) + b"]," + figures[1:]


def from_openai(body: bytes) -> Translated:
    """A body of /v1/embeddings as one of /api/embed; the context is `Embedding`.

    Lost: inputs that are token ids. Inputs are not cut (`truncate` is false). Raises MalformedRequest with `param`.
    """
    members = read_members(body)
    out = _model(members)
    lost: list[str] = []
    if "input" not in members:
        raise MalformedRequest("input is required", param="input", code="missing_required_parameter")
    value = members["input"]
    texts = [value] if first_byte(value) == b'"' else read_list(value, "input")
    if not texts:
        raise MalformedRequest("input must not be empty", param="input")
    if any(first_byte(text) != b'"' for text in texts):
        lost.append("input")
    out["input"] = bytes(value)
    out["truncate"] = b"false"
    if "dimensions" in members:
        out["dimensions"] = b"%d" % read(_INTEGER, members["dimensions"], "dimensions")
    form = read(_STRING, members["encoding_format"], "encoding_format") if "encoding_format" in members else "float"
    if form not in ("float", "base64"):
        raise MalformedRequest("encoding_format must be float or base64", param="encoding_format")
    return Translated(_object(out), tuple(lost), Embedding(base64=form == "base64"))


def openai_answer(body: bytes, context: object, stamp: Stamp) -> bytes:
    """An answer of /api/embed as one of /v1/embeddings. Raises StreamBroken for what is none."""
    told = _read(_OLLAMA, body)
    vectors = told.embeddings
    if vectors is None:
        vectors = [] if is_null(told.embedding) else [told.embedding]
    if not vectors:
        raise StreamBroken("the engine's answer has no embeddings")
    packed = isinstance(context, Embedding) and context.base64
    items = [
        b'{"object":"embedding","index":%d,"embedding":%b}' % (index, _packed(vector) if packed else _numbers(vector))
        for index, vector in enumerate(vectors)
    ]
    tokens = told.prompt_eval_count or 0
    usage = encode({"prompt_tokens": tokens, "total_tokens": tokens})
    head = b'{"object":"list","data":[' + b",".join(items) + b'],"model":' + encode(stamp.model)
    return head + b',"usage":' + usage + b"}"


def _model(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    if "model" not in members or not read(_STRING, members["model"], "model"):
        raise MalformedRequest("model is required", param="model", code="missing_required_parameter")
    return {"model": bytes(members["model"])}


def _object(members: dict[str, bytes]) -> bytes:
    return b"{" + b",".join(encode(key) + b":" + value for key, value in members.items()) + b"}"


def _read(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise StreamBroken("the engine sent what is no embeddings answer") from error


def _numbers(vector: msgspec.Raw) -> bytes:
    # As they are written, but for an engine that answers in base64 without being asked to.
    data = bytes(vector)
    if data.startswith(b'"'):
        try:
            packed = base64.b64decode(_read(_STRING, data), validate=True)
            numbers = [each for (each,) in struct.iter_unpack("<f", packed)]
        except (binascii.Error, struct.error, ValueError) as error:
            raise StreamBroken("the engine sent an embedding that is none") from error
        if not all(map(math.isfinite, numbers)):
            raise StreamBroken("the engine sent an embedding with what is no number")
        return encode(numbers)
    if not data.startswith(b"[") or data[1:-1].translate(None, _OF_NUMBERS):
        raise StreamBroken("the engine sent an embedding that is none")
    return data


def _packed(vector: msgspec.Raw) -> bytes:
    numbers = _read(_FLOATS, bytes(vector))
    try:
        return encode(base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode())
    except (struct.error, OverflowError) as error:
        raise StreamBroken("the engine sent an embedding that is none") from error
