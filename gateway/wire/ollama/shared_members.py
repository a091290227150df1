"""What /api/chat and /api/generate say alike, as members of a chat body."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.ollama.options_to_chat import chat_options
from gateway.wire.raw_members import NOTHING, encode, first_byte, read
from gateway.wire.translation import Translated

__all__ = ["answer_form", "joined", "model_and_options", "note_lost", "streams", "thinking"]

_MOST_LOGPROBS = 20
_BOOL = msgspec.json.Decoder(bool)
_INTEGER = msgspec.json.Decoder(int)
_STRING = msgspec.json.Decoder(str)
_THINK = msgspec.json.Decoder(bool | str)


def model_and_options(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    """`model` and what `options` say. Raises MalformedRequest with `param`."""
    if "model" not in members or not read(_STRING, members["model"], "model"):
        raise MalformedRequest("model is required", param="model", code="missing_required_parameter")
    return {"model": bytes(members["model"]), **chat_options(members.get("options", NOTHING))}


def streams(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    """`stream`, which Ollama takes for true when it is unsaid."""
    if "stream" in members and not read(_BOOL, members["stream"], "stream"):
        return {"stream": b"false"}
    return {"stream": b"true", "stream_options": b'{"include_usage":true}'}


def thinking(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    """`think` in the words that local engines have for it.

    true and false: `chat_template_kwargs.enable_thinking` (llama.cpp, vLLM, SGLang); a level ("low", "medium", "high";
    newer models have others): `reasoning_effort`. Unsaid, models do as they do, here as there.
    """
    if "think" not in members:
        return {}
    wanted = read(_THINK, members["think"], "think")
    if wanted in ("none", "false"):
        wanted = False
    elif wanted == "true":
        wanted = True
    if isinstance(wanted, bool):
        return {"chat_template_kwargs": b'{"enable_thinking":true}' if wanted else b'{"enable_thinking":false}'}
    if not wanted:
        raise MalformedRequest("think must be true, false or a level", param="think")
    return {"reasoning_effort": encode("high" if wanted == "max" else wanted)}


def answer_form(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    """`format` and log probabilities. Raises MalformedRequest with `param`."""
    found: dict[str, bytes] = {}
    wanted = members.get("format", NOTHING)
    if first_byte(wanted) == b"{":
        schema = b'{"name":"response","schema":' + bytes(wanted) + b"}"
        found["response_format"] = b'{"type":"json_schema","json_schema":' + schema + b"}"
    elif wanted is not NOTHING:
        kind = read(_STRING, wanted, "format")
        if kind not in ("", "json"):
            raise MalformedRequest('format must be "json" or a JSON schema', param="format")
        if kind:
            found["response_format"] = b'{"type":"json_object"}'
    most = read(_INTEGER, members["top_logprobs"], "top_logprobs") if "top_logprobs" in members else 0
    if not 0 <= most <= _MOST_LOGPROBS:
        raise MalformedRequest(f"top_logprobs must be between 0 and {_MOST_LOGPROBS}", param="top_logprobs")
    if "logprobs" in members and read(_BOOL, members["logprobs"], "logprobs"):
        found["logprobs"] = b"true"
        if most:
            found["top_logprobs"] = b"%d" % most
    return found


def note_lost(members: dict[str, msgspec.Raw], names: tuple[str, ...], lost: Lost) -> None:
    """Take note of those that are there and say something."""
    for name in names:
        if name in members and bytes(members[name]) not in (b'""', b"[]", b"{}", b"false", b"0"):
            lost.add(name)


def joined(out: dict[str, bytes], lost: Lost, context: object) -> Translated:
    """The body of these members."""
    json = b"{" + b",".join(encode(key) + b":" + value for key, value in out.items()) + b"}"
    return Translated(json, tuple(lost.paths), context)
