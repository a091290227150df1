"""The functions of a chat request as tools of messages."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list

__all__ = ["message_tool_choice", "message_tools"]

_NO_PARAMETERS = b'{"type":"object","properties":{}}'
_WORDS = {"auto": "auto", "required": "any", "none": "none"}


class _Function(msgspec.Struct, gc=False):
    name: str
    description: str | None = None
    parameters: msgspec.Raw = NOTHING
    strict: bool | None = None


class _Tool(msgspec.Struct, gc=False):
    type: str = "function"
    function: msgspec.Raw = NOTHING


class _Choice(msgspec.Struct):
    type: str = "function"
    function: msgspec.Raw = NOTHING


_TOOL = msgspec.json.Decoder(_Tool)
_FUNCTION = msgspec.json.Decoder(_Function)
_CHOICE = msgspec.json.Decoder(_Choice)
_STRING = msgspec.json.Decoder(str)


def message_tools(raw: msgspec.Raw, lost: Lost) -> list[bytes]:
    """Each function as a tool, its schema's bytes as they came; other kinds are lost. Raises MalformedRequest."""
    tools: list[bytes] = []
    for index, item in enumerate(read_list(raw, "tools")):
        path = f"tools[{index}]"
        tool = read(_TOOL, item, path)
        if tool.type != "function":
            lost.add(f"{path}.type={tool.type[:40]}")
            continue
        function = _function(tool.function, f"{path}.function")
        schema = _NO_PARAMETERS if is_null(function.parameters) else bytes(function.parameters)
        if not schema.startswith(b"{"):
            at = f"{path}.function.parameters"
            raise MalformedRequest(f"{at} must be an object", param=at)
        written = b'{"name":' + encode(function.name)
        if function.description:
            written += b',"description":' + encode(function.description)
        if function.strict:
            written += b',"strict":true'
        tools.append(written + b',"input_schema":' + schema + b"}")
    return tools


def message_tool_choice(raw: msgspec.Raw, parallel: bool, lost: Lost) -> bytes | None:
    """The `tool_choice`; None where nothing is to be said. parallel: several calls at once are allowed."""
    if is_null(raw):
        return None if parallel else _choice({"type": "auto"}, parallel)
    if first_byte(raw) == b'"':
        word = read(_STRING, raw, "tool_choice")
        if word not in _WORDS:
            raise MalformedRequest("tool_choice must be auto, required, none or a function", param="tool_choice")
        return _choice({"type": _WORDS[word]}, parallel)
    choice = read(_CHOICE, raw, "tool_choice")
    if choice.type != "function":
        lost.add(f"tool_choice.type={choice.type[:40]}")
        return None
    return _choice({"type": "tool", "name": _function(choice.function, "tool_choice.function").name}, parallel)


def _choice(choice: dict[str, object], parallel: bool) -> bytes:
    if not parallel and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    return encode(choice)


def _function(raw: msgspec.Raw, path: str) -> _Function:
    if is_null(raw):
        raise MalformedRequest(f"{path} is required", param=path, code="missing_required_parameter")
    return read(_FUNCTION, raw, path)
