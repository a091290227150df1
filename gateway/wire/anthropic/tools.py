"""The tools of a Messages request as functions of chat."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list

__all__ = ["chat_tool_choice", "chat_tools"]


class _Kind(msgspec.Struct, gc=False):
    type: str | None = None


class _Tool(msgspec.Struct, gc=False):
    name: str
    description: str | None = None
    input_schema: msgspec.Raw = NOTHING
    strict: bool | None = None


class _Choice(msgspec.Struct):
    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


_KIND = msgspec.json.Decoder(_Kind)
_TOOL = msgspec.json.Decoder(_Tool)
_CHOICE = msgspec.json.Decoder(_Choice)
_WORDS = {"auto": b'"auto"', "any": b'"required"', "none": b'"none"'}


def chat_tools(raw: msgspec.Raw, lost: Lost) -> list[bytes]:
    """Each tool with a schema as a function, the schema's bytes as they came.

    Tools that Anthropic runs, or whose schema only its models know (`web_search_20250305`, `bash_20250124`), have no
    counterpart. `cache_control`, `defer_loading` and the like are hints. Raises MalformedRequest with `param`.
    """
    tools: list[bytes] = []
    for index, item in enumerate(read_list(raw, "tools")):
        path = f"tools[{index}]"
        kind = read(_KIND, item, path).type
        if kind not in (None, "custom"):
            lost.add(f"{path}.type={kind[:40]}")
            continue
        tool = read(_TOOL, item, path)
        if is_null(tool.input_schema):
            at = f"{path}.input_schema"
            raise MalformedRequest(f"{at} is required", param=at, code="missing_required_parameter")
        if first_byte(tool.input_schema) != b"{":
            raise MalformedRequest(f"{path}.input_schema must be an object", param=f"{path}.input_schema")
        function = b'{"name":' + encode(tool.name)
        if tool.description is not None:
            function += b',"description":' + encode(tool.description)
        function += b',"parameters":' + bytes(tool.input_schema)
        if tool.strict is not None:
            function += b',"strict":' + encode(tool.strict)
        tools.append(b'{"type":"function","function":' + function + b"}}")
    return tools


def chat_tool_choice(raw: msgspec.Raw) -> dict[str, bytes]:
    """The members `tool_choice` and, where calls must come one at a time, `parallel_tool_calls`, as raw JSON."""
    choice = read(_CHOICE, raw, "tool_choice")
    members: dict[str, bytes] = {}
    if choice.type == "tool":
        if choice.name is None:
            raise MalformedRequest(
                "tool_choice.name is required", param="tool_choice.name", code="missing_required_parameter"
            )
        members["tool_choice"] = b'{"type":"function","function":{"name":' + encode(choice.name) + b"}}"
    elif choice.type in _WORDS:
        members["tool_choice"] = _WORDS[choice.type]
    else:
        raise MalformedRequest("tool_choice.type must be auto, any, tool or none", param="tool_choice.type")
    if choice.disable_parallel_tool_use:
        members["parallel_tool_calls"] = b"false"
    return members
