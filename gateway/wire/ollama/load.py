"""A request without anything to answer asks Ollama to load a model, or to unload it. A gateway answers it itself."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.wire.ollama.created_at import created_at
from gateway.wire.raw_members import NOTHING, first_byte, is_null
from gateway.wire.translation import Stamp

__all__ = ["load_answer", "load_request"]

_LONGEST = 16 * 1024
"""Bytes; what is longer has something to answer, or options that nobody writes."""


class _Body(msgspec.Struct):
    model: str
    messages: msgspec.Raw = NOTHING
    prompt: msgspec.Raw = NOTHING
    images: msgspec.Raw = NOTHING
    input: msgspec.Raw = NOTHING
    keep_alive: Any = None


_BODY = msgspec.json.Decoder(_Body)


def load_request(body: bytes) -> bool:
    """Whether a body of /api/chat has no messages, one of /api/generate no prompt, one of /api/embed no input.

    False for what can't be read: reading the request says what is wrong with it.
    """
    read = _read(body)
    return read is not None and all(_is_empty(raw) for raw in (read.messages, read.prompt, read.images, read.input))


def load_answer(body: bytes, surface: str, stamp: Stamp) -> bytes:
    """The answer of "ollama_chat", "ollama_generate" or "ollama_embed", one JSON object also where streams are default.

    `keep_alive` 0 asks to unload; a gateway does neither, and clients wait for no more than to read that it was heard.
    """
    told: dict[str, Any] = {"model": stamp.model}
    if surface == "ollama_embed":
        return msgspec.json.encode({**told, "embeddings": [], "embedding": []})  # one for each of its two paths
    told["created_at"] = created_at(stamp.created)
    if surface == "ollama_generate":
        told["response"] = ""
    else:
        told["message"] = {"role": "assistant", "content": ""}
    read = _read(body)
    unload = read is not None and read.keep_alive in (0, "0", "0s", "0m", "0h")
    return msgspec.json.encode({**told, "done": True, "done_reason": "unload" if unload else "load"})


def _read(body: bytes) -> _Body | None:
    if len(body) > _LONGEST:
        return None
    try:
        return _BODY.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def _is_empty(raw: msgspec.Raw) -> bool:
    if is_null(raw) or bytes(raw) == b'""':
        return True
    return first_byte(raw) == b"[" and not bytes(raw)[1:-1].strip()
