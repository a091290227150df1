"""A chat request as a Messages request: the client speaks chat completions, the engine messages only."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.anthropic.chat_tools import message_tool_choice, message_tools
from gateway.wire.anthropic.chat_turns import ChatTurns
from gateway.wire.anthropic.parts import SEPARATOR
from gateway.wire.chat_wanted import wanted_in
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list, read_members
from gateway.wire.translation import Translated

__all__ = ["MAX_TOKENS", "from_chat"]

MAX_TOKENS = 4096
"""Tokens of an answer where the client names no limit, which messages demand: the most that every model takes."""

_LOST = ("audio", "function_call", "functions", "logit_bias", "web_search_options")
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}

_BOOL = msgspec.json.Decoder(bool)
_STRING = msgspec.json.Decoder(str)
_NUMBER = msgspec.json.Decoder(int | float)
_STRINGS: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])


class _Schema(msgspec.Struct):
    schema: msgspec.Raw = NOTHING


class _Format(msgspec.Struct):
    type: str
    json_schema: msgspec.Raw = NOTHING


_FORMAT = msgspec.json.Decoder(_Format)
_SCHEMA = msgspec.json.Decoder(_Schema)


def from_chat(body: bytes) -> Translated:
    """Translate a body of /v1/chat/completions; the context is `Wanted`.

    Schemas and arguments keep their bytes. Lost: several choices, log probabilities, a bias of tokens, sound, functions
    of the first API, stop strings of nothing but space (refused there), JSON without a schema. Left out as hints:
    penalties, seed, reasoning of earlier turns (it goes nowhere without its author's signature), metadata, tiers.
    `temperature` ends at 1 there, and a `top_p` of 1 says nothing. Raises MalformedRequest with `param`.
    """
    members = read_members(body)
    lost = Lost()
    out: dict[str, bytes] = {}
    if "model" in members:
        read(_STRING, members["model"], "model")
        out["model"] = bytes(members["model"])
    out["max_tokens"] = _budget(members)
    out |= _sampling(members)
    out |= _stops(members, lost)
    out |= _output(members, lost)
    out["stream"] = b"true" if "stream" in members and read(_BOOL, members["stream"], "stream") else b"false"
    _note_lost(members, lost)
    out |= _tools(members, lost)
    out |= _turns(members, lost)
    json = b"{" + b",".join(encode(key) + b":" + value for key, value in out.items()) + b"}"
    return Translated(json, tuple(lost.paths), wanted_in(members))


def _budget(members: dict[str, msgspec.Raw]) -> bytes:
    for name in ("max_completion_tokens", "max_tokens"):
        if name in members:
            read(_NUMBER, members[name], name)
            return bytes(members[name])
    return b"%d" % MAX_TOKENS


def _sampling(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in ("temperature", "top_p", "top_k"):
        if name in members:
            value = read(_NUMBER, members[name], name)
            if name == "temperature" and value > 1:
                found[name] = b"1"
            elif name != "top_p" or value != 1:  # some models refuse it beside a temperature
                found[name] = bytes(members[name])
    return found


def _stops(members: dict[str, msgspec.Raw], lost: Lost) -> dict[str, bytes]:
    if "stop" not in members:
        return {}
    raw = members["stop"]
    stops = [read(_STRING, raw, "stop")] if first_byte(raw) == b'"' else read(_STRINGS, raw, "stop")
    if any(not stop.strip() for stop in stops):
        lost.add("stop")
    return {"stop_sequences": encode(stops)} if stops else {}


def _output(members: dict[str, msgspec.Raw], lost: Lost) -> dict[str, bytes]:
    config: list[bytes] = []
    if "reasoning_effort" in members:
        effort = read(_STRING, members["reasoning_effort"], "reasoning_effort")
        if effort in _EFFORTS:  # "none": it does not think unless it is told to
            config.append(b'"effort":' + encode(_EFFORTS[effort]))
    if "response_format" in members:
        wanted = read(_FORMAT, members["response_format"], "response_format")
        if wanted.type == "json_schema":
            config.append(b'"format":{"type":"json_schema","schema":' + _schema(wanted) + b"}")
        elif wanted.type != "text":
            lost.add(f"response_format.type={wanted.type[:40]}")
    return {"output_config": b"{" + b",".join(config) + b"}"} if config else {}


def _schema(wanted: _Format) -> bytes:
    path = "response_format.json_schema"
    schema = NOTHING if is_null(wanted.json_schema) else read(_SCHEMA, wanted.json_schema, path).schema
    if first_byte(schema) != b"{":
        raise MalformedRequest(f"{path}.schema must be an object", param=f"{path}.schema")
    return bytes(schema)


def _note_lost(members: dict[str, msgspec.Raw], lost: Lost) -> None:
    if "n" in members and read(_NUMBER, members["n"], "n") > 1:
        lost.add("n")
    for name in ("logprobs", "top_logprobs"):
        if name in members and bytes(members[name]) not in (b"false", b"0"):
            lost.add(name)
    for name in _LOST:
        if name in members and bytes(members[name]) not in (b"{}", b"[]"):
            lost.add(name)
    if "modalities" in members and read(_STRINGS, members["modalities"], "modalities") != ["text"]:
        lost.add("modalities")


def _tools(members: dict[str, msgspec.Raw], lost: Lost) -> dict[str, bytes]:
    tools = message_tools(members["tools"], lost) if "tools" in members else []
    raw = members.get("parallel_tool_calls", NOTHING)
    parallel = True if raw is NOTHING else read(_BOOL, raw, "parallel_tool_calls")
    choice = message_tool_choice(members.get("tool_choice", NOTHING), parallel, lost)
    if not tools:
        return {}
    found = {"tools": b"[" + b",".join(tools) + b"]"}
    return found if choice is None else {**found, "tool_choice": choice}


def _turns(members: dict[str, msgspec.Raw], lost: Lost) -> dict[str, bytes]:
    turns = ChatTurns(lost)
    for index, raw in enumerate(read_list(members["messages"], "messages") if "messages" in members else []):
        turns.take(raw, f"messages[{index}]")
    turns.end()
    if not turns.turns:
        raise MalformedRequest("messages must hold at least one message that is not empty", param="messages")
    found: dict[str, bytes] = {}
    if turns.system:
        found["system"] = encode(SEPARATOR.join(turns.system))
    written = (b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks)) for role, blocks in turns.turns)
    return {**found, "messages": b"[" + b",".join(written) + b"]"}
