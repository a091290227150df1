"""A chat request as one of /api/chat: the client speaks chat completions, the engine Ollama's own API only."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.chat_wanted import wanted_in
from gateway.wire.lost import Lost
from gateway.wire.ollama.options_from_chat import ollama_options
from gateway.wire.ollama.shared_members import joined
from gateway.wire.ollama.turns_from_chat import FromChatTurns
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list, read_members
from gateway.wire.translation import Translated

__all__ = ["from_chat"]

_LOST = ("audio", "function_call", "functions", "logit_bias", "web_search_options")
_NONE = (b"{}", b"[]", b'"none"', b'"auto"')
_LEVELS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}

_BOOL = msgspec.json.Decoder(bool)
_INTEGER = msgspec.json.Decoder(int)
_STRING = msgspec.json.Decoder(str)
_STRINGS: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])


class _Schema(msgspec.Struct):
    schema: msgspec.Raw = NOTHING


class _Format(msgspec.Struct):
    type: str
    json_schema: msgspec.Raw = NOTHING


class _Template(msgspec.Struct):
    enable_thinking: bool | None = None


class _Tool(msgspec.Struct, gc=False):
    type: str
    function: msgspec.Raw = NOTHING


_FORMAT = msgspec.json.Decoder(_Format)
_SCHEMA = msgspec.json.Decoder(_Schema)
_TEMPLATE = msgspec.json.Decoder(_Template)
_TOOL = msgspec.json.Decoder(_Tool)


def from_chat(body: bytes) -> Translated:
    """Translate a body of /v1/chat/completions; the context is `Wanted`.

    Texts, schemas and arguments keep their bytes. Lost: several choices, a bias of tokens, sound as output, functions
    of the first API, a call that is forced (`tool_choice`), pictures by URL (Ollama fetches none), files. Left out as
    hints: names of speakers, parallel_tool_calls, metadata, tiers. Raises MalformedRequest with `param`.
    """
    members = read_members(body)
    lost = Lost()
    out: dict[str, bytes] = {}
    if "model" in members:
        read(_STRING, members["model"], "model")
        out["model"] = bytes(members["model"])
    out |= _form(members, lost) | _thinking(members)
    _note_lost(members, lost)
    out["stream"] = b"true" if "stream" in members and read(_BOOL, members["stream"], "stream") else b"false"
    options = ollama_options(members)
    if options:
        out["options"] = b"{" + b",".join(encode(key) + b":" + value for key, value in options.items()) + b"}"
    out |= _tools(members, lost)
    out["messages"] = _messages(members, lost)
    return joined(out, lost, wanted_in(members))


def _messages(members: dict[str, msgspec.Raw], lost: Lost) -> bytes:
    turns = FromChatTurns(lost)
    for index, raw in enumerate(read_list(members["messages"], "messages") if "messages" in members else []):
        turns.take(raw, f"messages[{index}]")
    if not turns.messages:
        raise MalformedRequest("messages must hold at least one message", param="messages")
    return b"[" + b",".join(turns.messages) + b"]"


def _form(members: dict[str, msgspec.Raw], lost: Lost) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    if "response_format" in members:
        wanted = read(_FORMAT, members["response_format"], "response_format")
        if wanted.type == "json_schema":
            found["format"] = _schema(wanted)
        elif wanted.type == "json_object":
            found["format"] = b'"json"'
        elif wanted.type != "text":
            lost.add(f"response_format.type={wanted.type[:40]}")
    if "logprobs" in members and read(_BOOL, members["logprobs"], "logprobs"):
        found["logprobs"] = b"true"
        if "top_logprobs" in members:
            found["top_logprobs"] = b"%d" % read(_INTEGER, members["top_logprobs"], "top_logprobs")
    return found


def _schema(wanted: _Format) -> bytes:
    path = "response_format.json_schema"
    schema = NOTHING if is_null(wanted.json_schema) else read(_SCHEMA, wanted.json_schema, path).schema
    if first_byte(schema) != b"{":
        raise MalformedRequest(f"{path}.schema must be an object", param=f"{path}.schema")
    return bytes(schema)


def _thinking(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    if "reasoning_effort" in members:
        effort = read(_STRING, members["reasoning_effort"], "reasoning_effort")
        if effort == "none":
            return {"think": b"false"}
        return {"think": encode(_LEVELS[effort])} if effort in _LEVELS else {}
    if "chat_template_kwargs" in members:
        told = read(_TEMPLATE, members["chat_template_kwargs"], "chat_template_kwargs").enable_thinking
        if told is not None:
            return {"think": b"true" if told else b"false"}
    return {}


def _note_lost(members: dict[str, msgspec.Raw], lost: Lost) -> None:
    if "n" in members and read(_INTEGER, members["n"], "n") > 1:
        lost.add("n")
    for name in _LOST:
        if name in members and bytes(members[name]) not in _NONE:
            lost.add(name)
    if "modalities" in members and read(_STRINGS, members["modalities"], "modalities") != ["text"]:
        lost.add("modalities")


def _tools(members: dict[str, msgspec.Raw], lost: Lost) -> dict[str, bytes]:
    found: list[bytes] = []
    for index, item in enumerate(read_list(members["tools"], "tools") if "tools" in members else []):
        tool = read(_TOOL, item, f"tools[{index}]")
        if tool.type != "function":
            lost.add(f"tools[{index}].type={tool.type[:40]}")
        elif first_byte(tool.function) != b"{":
            at = f"tools[{index}].function"
            raise MalformedRequest(f"{at} must be an object", param=at)
        else:
            found.append(bytes(item))
    choice = bytes(members.get("tool_choice", NOTHING))
    if not found or choice == b'"none"':
        return {}
    if choice not in (b"", b'"auto"'):
        lost.add("tool_choice")
    return {"tools": b"[" + b",".join(found) + b"]"}
