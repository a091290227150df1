"""The items of a request, typed by what a translation reads of each."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.wire.raw_members import NOTHING

__all__ = [
    "AGENT",
    "CUSTOM_CALL",
    "FUNCTION_CALL",
    "HEAD",
    "MESSAGE",
    "OUTPUT",
    "REASONING",
    "SEARCH_CALL",
    "SEARCH_OUTPUT",
    "SHELL_CALL",
]


class _Head(msgspec.Struct, gc=False):
    type: str | None = None
    role: str | None = None


class _Message(msgspec.Struct, gc=False):
    role: str
    content: msgspec.Raw = NOTHING


class _Agent(msgspec.Struct, gc=False):
    content: msgspec.Raw = NOTHING


class _Reasoning(msgspec.Struct, gc=False):
    content: msgspec.Raw = NOTHING
    summary: msgspec.Raw = NOTHING


class _FunctionCall(msgspec.Struct, gc=False):
    call_id: str
    name: str
    arguments: str
    namespace: str | None = None


class _CustomCall(msgspec.Struct, gc=False):
    call_id: str
    name: str
    input: str
    namespace: str | None = None


class _ShellCall(msgspec.Struct, gc=False):
    action: dict[str, Any]
    call_id: str | None = None
    id: str | None = None


class _SearchCall(msgspec.Struct, gc=False):
    call_id: str | None = None
    arguments: msgspec.Raw = NOTHING


class _Output(msgspec.Struct, gc=False):
    call_id: str | None = None
    id: str | None = None
    output: msgspec.Raw = NOTHING


class _SearchOutput(msgspec.Struct, gc=False):
    call_id: str | None = None
    tools: msgspec.Raw = NOTHING


HEAD = msgspec.json.Decoder(_Head)
MESSAGE = msgspec.json.Decoder(_Message)
AGENT = msgspec.json.Decoder(_Agent)
REASONING = msgspec.json.Decoder(_Reasoning)
FUNCTION_CALL = msgspec.json.Decoder(_FunctionCall)
CUSTOM_CALL = msgspec.json.Decoder(_CustomCall)
SHELL_CALL = msgspec.json.Decoder(_ShellCall)
SEARCH_CALL = msgspec.json.Decoder(_SearchCall)
OUTPUT = msgspec.json.Decoder(_Output)
SEARCH_OUTPUT = msgspec.json.Decoder(_SearchOutput)
