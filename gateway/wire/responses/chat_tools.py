"""The tools of a chat request as tools of a response."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list

__all__ = ["response_tool_choice", "response_tools"]

_WORDS = ("auto", "required", "none")


class _Function(msgspec.Struct, gc=False):
    name: str
    description: str | None = None
    parameters: msgspec.Raw = NOTHING
    strict: bool | None = None
    format: msgspec.Raw = NOTHING


class _Tool(msgspec.Struct, gc=False):
    type: str = "function"
    function: msgspec.Raw = NOTHING
    custom: msgspec.Raw = NOTHING
    allowed_tools: msgspec.Raw = NOTHING


class _Format(msgspec.Struct, gc=False):
    type: str = "text"
    grammar: msgspec.Raw = NOTHING


class _Grammar(msgspec.Struct, gc=False):
    syntax: str = ""
    definition: str = ""


class _Allowed(msgspec.Struct):
    mode: str = "auto"
    tools: msgspec.Raw = NOTHING


_TOOL = msgspec.json.Decoder(_Tool)
_FUNCTION = msgspec.json.Decoder(_Function)
_FORMAT = msgspec.json.Decoder(_Format)
_GRAMMAR = msgspec.json.Decoder(_Grammar)
_ALLOWED = msgspec.json.Decoder(_Allowed)
_STRING = msgspec.json.Decoder(str)


def response_tools(raw: msgspec.Raw, lost: Lost) -> list[bytes]:
    """Each function and custom tool, a schema's bytes as they came; other kinds are lost.

    A function is strict there unless it says otherwise, here the other way round. Raises MalformedRequest.
    """
    tools: list[bytes] = []
    for index, item in enumerate(read_list(raw, "tools")):
        path = f"tools[{index}]"
        tool = read(_TOOL, item, path)
        if tool.type == "function":
            tools.append(_function(tool.function, f"{path}.function"))
        elif tool.type == "custom":
            tools.append(_custom(tool.custom, f"{path}.custom"))
        else:
            lost.add(f"{path}.type={tool.type[:40]}")
    return tools


def response_tool_choice(raw: msgspec.Raw, lost: Lost) -> bytes | None:
    """The `tool_choice`; None where nothing is to be said. Raises MalformedRequest with `param`."""
    if is_null(raw):
        return None
    if first_byte(raw) == b'"':
        if read(_STRING, raw, "tool_choice") not in _WORDS:
            raise MalformedRequest("tool_choice must be auto, required, none or a tool", param="tool_choice")
        return bytes(raw)
    choice = read(_TOOL, raw, "tool_choice")
    if choice.type == "allowed_tools":
        at = "tool_choice.allowed_tools"
        allowed = _Allowed() if is_null(choice.allowed_tools) else read(_ALLOWED, choice.allowed_tools, at)
        items = [] if is_null(allowed.tools) else read_list(allowed.tools, f"{at}.tools")
        tools = [_chosen(item, f"{at}.tools[{index}]", lost) for index, item in enumerate(items)]
        named = b",".join(tool for tool in tools if tool is not None)
        return b'{"type":"allowed_tools","mode":' + encode(allowed.mode) + b',"tools":[' + named + b"]}"
    return _chosen(raw, "tool_choice", lost)


def _chosen(raw: msgspec.Raw, path: str, lost: Lost) -> bytes | None:
    tool = read(_TOOL, raw, path)
    if tool.type not in ("function", "custom"):
        lost.add(f"{path}.type={tool.type[:40]}")
        return None
    inner = tool.function if tool.type == "function" else tool.custom
    return encode({"type": tool.type, "name": _read(inner, f"{path}.{tool.type}").name})


def _function(raw: msgspec.Raw, path: str) -> bytes:
    function = _read(raw, path)
    written = b'{"type":"function","name":' + encode(function.name)
    if function.description:
        written += b',"description":' + encode(function.description)
    parameters = b'{"type":"object","properties":{}}' if is_null(function.parameters) else bytes(function.parameters)
    if not parameters.startswith(b"{"):
        raise MalformedRequest(f"{path}.parameters must be an object", param=f"{path}.parameters")
    return written + b',"parameters":' + parameters + b',"strict":' + encode(function.strict is True) + b"}"


def _custom(raw: msgspec.Raw, path: str) -> bytes:
    tool = _read(raw, path)
    written = b'{"type":"custom","name":' + encode(tool.name)
    if tool.description:
        written += b',"description":' + encode(tool.description)
    if not is_null(tool.format):
        told = read(_FORMAT, tool.format, f"{path}.format")
        if told.type == "grammar" and not is_null(told.grammar):
            grammar = read(_GRAMMAR, told.grammar, f"{path}.format.grammar")
            format_ = {"type": "grammar", "syntax": grammar.syntax, "definition": grammar.definition}
            written += b',"format":' + encode(format_)
    return written + b"}"


def _read(raw: msgspec.Raw, path: str) -> _Function:
    if is_null(raw):
        raise MalformedRequest(f"{path} is required", param=path, code="missing_required_parameter")
    return read(_FUNCTION, raw, path)
