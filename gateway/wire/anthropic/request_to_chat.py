"""A Messages request as a chat request: the client speaks messages, the engine chat completions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.anthropic.conversation import Conversation
from gateway.wire.anthropic.tools import chat_tool_choice, chat_tools
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_client, read_list
from gateway.wire.translation import Translated

__all__ = ["Asked", "to_chat"]

_NUMBERS = ("temperature", "top_p", "top_k", "max_tokens")
_ENGINE_OPTIONS = (
    "chat_template_kwargs",
    "frequency_penalty",
    "ignore_eos",
    "min_p",
    "min_tokens",
    "presence_penalty",
    "repeat_penalty",
    "repetition_penalty",
    "seed",
    "typical_p",
)
"""No members of Anthropic's API: local engines take them on their own Messages surface too."""
_EFFORTS = {"low": b'"low"', "medium": b'"medium"', "xhigh": b'"high"', "max": b'"high"'}
"""Anthropic's default is high: to say so would only be refused by models that know no effort."""

_NUMBER = msgspec.json.Decoder(int | float)
_BOOL = msgspec.json.Decoder(bool)
_MODEL = msgspec.json.Decoder(str)
_STOPS: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])


class _Thinking(msgspec.Struct):
    type: str


class _Format(msgspec.Struct):
    type: str
    schema: msgspec.Raw = NOTHING


class _Output(msgspec.Struct):
    effort: Any = None
    format: msgspec.Raw = NOTHING


_THINKING = msgspec.json.Decoder(_Thinking)
_FORMAT = msgspec.json.Decoder(_Format)
_OUTPUT = msgspec.json.Decoder(_Output)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the answer's translation must know: the stop sequences that were asked for."""

    stops: tuple[str, ...] = ()


def to_chat(body: bytes) -> Translated:
    """Translate a body of /v1/messages or /v1/messages/count_tokens; the context is `Asked`.

    Schemas and arguments keep their bytes. Thinking of earlier turns goes on as `reasoning_content`, which local
    engines render where a model's template does. `thinking` itself: "disabled" becomes llama.cpp's, vLLM's and SGLang's
    `chat_template_kwargs.enable_thinking`, the only word that they have for it; "enabled" and "adaptive" are what
    reasoning models do anyway, and a budget in tokens has no counterpart. `output_config.effort` becomes
    `reasoning_effort` unless it is the default. `max_tokens` may be missing, as engines allow and counting does.

    Left out as hints: cache marks, metadata, service tier, context management, signatures, redacted thinking.
    Raises MalformedRequest with `param`.
    """
    members = read_client(body)
    lost = Lost()
    out: dict[str, bytes] = {}
    if "model" in members:
        read(_MODEL, members["model"], "model")
        out["model"] = bytes(members["model"])
    for name in _NUMBERS:
        if name in members:
            read(_NUMBER, members[name], name)
            out[name] = bytes(members[name])
    for name in _ENGINE_OPTIONS:
        if name in members:
            out[name] = bytes(members[name])
    stops = read(_STOPS, members["stop_sequences"], "stop_sequences") if "stop_sequences" in members else []
    if stops:
        out["stop"] = encode(stops)
    out |= _reasoning(members, out)
    out |= _format(members)
    out |= _stream(members)
    for name in ("container", "mcp_servers"):
        if name in members and bytes(members[name]) != b"[]":
            lost.add(name)
    out |= _tools(members, lost)
    out["messages"] = _messages(members, lost)
    json = b"{" + b",".join(encode(key) + b":" + value for key, value in out.items()) + b"}"
    return Translated(json, tuple(lost.paths), Asked(tuple(stops)))


def _messages(members: dict[str, msgspec.Raw], lost: Lost) -> bytes:
    turns = read_list(members["messages"], "messages") if "messages" in members else []
    if not turns:
        raise MalformedRequest("messages must hold at least one message", param="messages")
    conversation = Conversation(lost)
    if "system" in members:
        conversation.system(members["system"], "system")
    for index, turn in enumerate(turns):
        conversation.turn(turn, f"messages[{index}]")
    conversation.end()
    if not conversation.messages:
        raise MalformedRequest("messages must hold some content", param="messages")
    return b"[" + b",".join(conversation.messages) + b"]"


def _tools(members: dict[str, msgspec.Raw], lost: Lost) -> dict[str, bytes]:
    tools = chat_tools(members["tools"], lost) if "tools" in members else []
    choice = chat_tool_choice(members["tool_choice"]) if "tool_choice" in members else {}
    if not tools:  # engines refuse a choice among none, and an empty list
        return {}
    return {"tools": b"[" + b",".join(tools) + b"]", **choice}


def _stream(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    if "stream" in members and read(_BOOL, members["stream"], "stream"):
        return {"stream": b"true", "stream_options": b'{"include_usage":true}'}
    return {"stream": b"false"}


def _reasoning(members: dict[str, msgspec.Raw], out: dict[str, bytes]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    if "thinking" in members:
        kind = read(_THINKING, members["thinking"], "thinking").type
        if kind == "disabled" and "chat_template_kwargs" not in out:
            found["chat_template_kwargs"] = b'{"enable_thinking":false}'
    if "output_config" in members:
        effort = read(_OUTPUT, members["output_config"], "output_config").effort
        if isinstance(effort, str) and effort in _EFFORTS:
            found["reasoning_effort"] = _EFFORTS[effort]
    return found


def _format(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    path, raw = "output_format", members.get("output_format", NOTHING)  # the name that it had in beta
    if "output_config" in members:
        told = read(_OUTPUT, members["output_config"], "output_config").format
        if not is_null(told):
            path, raw = "output_config.format", told
    if is_null(raw):
        return {}
    wanted = read(_FORMAT, raw, path)
    if wanted.type != "json_schema":
        raise MalformedRequest(f"{path}.type must be json_schema", param=f"{path}.type")
    if first_byte(wanted.schema) != b"{":
        raise MalformedRequest(f"{path}.schema must be an object", param=f"{path}.schema")
    schema = b'{"name":"response","strict":true,"schema":' + bytes(wanted.schema) + b"}"
    return {"response_format": b'{"type":"json_schema","json_schema":' + schema + b"}"}
