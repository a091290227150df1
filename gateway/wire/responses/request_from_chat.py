"""A chat request as a Responses request: the client speaks chat completions, the engine responses only."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.chat_wanted import wanted_in
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list, read_members
from gateway.wire.responses.chat_tools import response_tool_choice, response_tools
from gateway.wire.responses.chat_turns import ChatTurns
from gateway.wire.translation import Translated

__all__ = ["from_chat"]

_LOST = ("audio", "function_call", "functions", "logit_bias", "web_search_options", "frequency_penalty", "stop")
_NOTHING_SAID = (b"{}", b"[]", b"0", b"0.0", b'""', b"false")
_OWN = frozenset(
    (
        *_LOST,
        *("presence_penalty", "messages", "model", "max_completion_tokens", "max_tokens", "n_predict", "n"),
        *("logprobs", "top_logprobs", "modalities", "prediction", "reasoning_effort", "response_format", "seed"),
        *("store", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls", "verbosity", "metadata"),
    )
)
"""Members that are translated, lost or left out. What is not in the list goes on as it is: `temperature`, `top_p`,
`user`, `service_tier`, and an engine's own options."""

_BOOL = msgspec.json.Decoder(bool)
_STRING = msgspec.json.Decoder(str)
_NUMBER = msgspec.json.Decoder(int | float)
_STRINGS: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])


class _Schema(msgspec.Struct):
    name: str = "response"
    description: str | None = None
    strict: bool | None = None
    schema: msgspec.Raw = NOTHING


class _Format(msgspec.Struct):
    type: str
    json_schema: msgspec.Raw = NOTHING


_FORMAT = msgspec.json.Decoder(_Format)
_SCHEMA = msgspec.json.Decoder(_Schema)


def from_chat(body: bytes) -> Translated:
    """Translate a body of /v1/chat/completions; the context is `Wanted`.

    Schemas keep their bytes. Nothing is stored, which is chat's default and not the other's. Lost: several choices,
    stop strings, penalties, a bias of tokens, sound to come, functions of the first API. Left out as hints: seed,
    predictions, metadata, reasoning of earlier turns. Raises MalformedRequest with `param`.
    """
    members = read_members(body)
    lost = Lost()
    out: dict[str, bytes] = {}
    if "model" in members:
        read(_STRING, members["model"], "model")
        out["model"] = bytes(members["model"])
    out["input"] = _input(members, lost)
    out |= _tools(members, lost)
    out |= {name: bytes(raw) for name, raw in members.items() if name not in _OWN}
    for name in ("max_completion_tokens", "max_tokens", "n_predict"):
        if name in members:
            read(_NUMBER, members[name], name)
            out["max_output_tokens"] = bytes(members[name])
            break
    if "reasoning_effort" in members:
        out["reasoning"] = b'{"effort":' + encode(read(_STRING, members["reasoning_effort"], "reasoning_effort")) + b"}"
    out |= _text(members)
    out |= _logprobs(members)
    _note_lost(members, lost)
    out["store"] = b"false"
    out["stream"] = b"true" if "stream" in members and read(_BOOL, members["stream"], "stream") else b"false"
    json = b"{" + b",".join(encode(key) + b":" + value for key, value in out.items()) + b"}"
    return Translated(json, tuple(lost.paths), wanted_in(members))


def _input(members: dict[str, msgspec.Raw], lost: Lost) -> bytes:
    turns = ChatTurns(lost)
    for index, raw in enumerate(read_list(members["messages"], "messages") if "messages" in members else []):
        turns.take(raw, f"messages[{index}]")
    if not turns.items and not lost.paths:
        raise MalformedRequest("messages must hold at least one message that is not empty", param="messages")
    return b"[" + b",".join(turns.items) + b"]"


def _tools(members: dict[str, msgspec.Raw], lost: Lost) -> dict[str, bytes]:
    tools = response_tools(members["tools"], lost) if "tools" in members else []
    choice = response_tool_choice(members.get("tool_choice", NOTHING), lost)
    found: dict[str, bytes] = {}
    if not tools:
        return found
    found["tools"] = b"[" + b",".join(tools) + b"]"
    if choice is not None:
        found["tool_choice"] = choice
    if "parallel_tool_calls" in members:
        read(_BOOL, members["parallel_tool_calls"], "parallel_tool_calls")
        found["parallel_tool_calls"] = bytes(members["parallel_tool_calls"])
    return found


def _text(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    text: list[bytes] = []
    if "response_format" in members:
        wanted = read(_FORMAT, members["response_format"], "response_format")
        if wanted.type == "json_schema":
            text.append(b'"format":' + _schema(wanted.json_schema))
        elif wanted.type != "text":
            text.append(b'"format":' + encode({"type": wanted.type}))
    if "verbosity" in members:
        text.append(b'"verbosity":' + encode(read(_STRING, members["verbosity"], "verbosity")))
    return {"text": b"{" + b",".join(text) + b"}"} if text else {}


def _schema(raw: msgspec.Raw) -> bytes:
    path = "response_format.json_schema"
    wanted = _Schema() if is_null(raw) else read(_SCHEMA, raw, path)
    if first_byte(wanted.schema) != b"{":
        raise MalformedRequest(f"{path}.schema must be an object", param=f"{path}.schema")
    about = {"type": "json_schema", "name": wanted.name, "strict": wanted.strict is True}
    if wanted.description is not None:
        about["description"] = wanted.description
    return encode(about)[:-1] + b',"schema":' + bytes(wanted.schema) + b"}"


def _logprobs(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    if "logprobs" not in members or not read(_BOOL, members["logprobs"], "logprobs"):
        return {}
    found = {"include": b'["message.output_text.logprobs"]'}
    if "top_logprobs" in members:
        read(_NUMBER, members["top_logprobs"], "top_logprobs")
        found["top_logprobs"] = bytes(members["top_logprobs"])
    return found


def _note_lost(members: dict[str, msgspec.Raw], lost: Lost) -> None:
    if "n" in members and read(_NUMBER, members["n"], "n") > 1:
        lost.add("n")
    said = (name for name in (*_LOST, "presence_penalty") if name in members)
    for name in said:
        if bytes(members[name]) not in _NOTHING_SAID:
            lost.add(name)
    if "modalities" in members and read(_STRINGS, members["modalities"], "modalities") != ["text"]:
        lost.add("modalities")
