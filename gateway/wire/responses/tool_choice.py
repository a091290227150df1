"""Which of the tools may or must be called, in chat's words."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, read, read_list
from gateway.wire.responses.toolbox import Toolbox

__all__ = ["chat_tools"]


class _Choice(msgspec.Struct):
    type: str
    name: str | None = None
    namespace: str | None = None
    mode: str = "auto"
    tools: msgspec.Raw = NOTHING


_CHOICE = msgspec.json.Decoder(_Choice)
_WORD = msgspec.json.Decoder(str)
_WORDS = ("auto", "none", "required")


def chat_tools(toolbox: Toolbox, raw: msgspec.Raw | None, lost: Lost) -> dict[str, bytes]:
    """The members `tools` and `tool_choice` of the chat body, raw; none where no tool is left to offer.

    A choice of something that chat has no tool for is lost. `allowed_tools` offers only those. Raises MalformedRequest
    with `param`.
    """
    functions = toolbox.functions
    choice: bytes | None = None
    if raw is not None and first_byte(raw) == b'"':
        word = read(_WORD, raw, "tool_choice")
        if word not in _WORDS:
            raise MalformedRequest("tool_choice must be auto, none, required or an object", param="tool_choice")
        choice = encode(word)
        if word == "required" and not functions:
            lost.add("tool_choice=required")
    elif raw is not None:
        asked = read(_CHOICE, raw, "tool_choice")
        if asked.type == "allowed_tools":
            functions = _allowed(toolbox, asked)
            choice = b'"required"' if asked.mode == "required" else b'"auto"'
            if asked.mode == "required" and not functions:
                lost.add("tool_choice.tools")
        else:
            name = _name(toolbox, asked, "tool_choice")
            if name is None:
                lost.add(f"tool_choice.type={asked.type[:40]}")
            else:
                choice = b'{"type":"function","function":{"name":' + encode(name) + b"}}"
    if not functions:  # engines refuse a choice among none, and an empty list
        return {}
    members = {"tools": b"[" + b",".join(functions.values()) + b"]"}
    if choice is not None:
        members["tool_choice"] = choice
    return members


def _allowed(toolbox: Toolbox, asked: _Choice) -> dict[str, bytes]:
    tools = () if asked.tools is NOTHING else read_list(asked.tools, "tool_choice.tools")
    allowed: set[str] = set()
    for index, item in enumerate(tools):
        at = f"tool_choice.tools[{index}]"
        name = _name(toolbox, read(_CHOICE, item, at), at)
        if name is not None:
            allowed.add(name)
    return {name: function for name, function in toolbox.functions.items() if name in allowed}


def _name(toolbox: Toolbox, asked: _Choice, path: str) -> str | None:
    # The tool's name in chat; None for one that the service runs.
    if asked.type in ("function", "custom"):
        if asked.name is None:
            raise MalformedRequest(f"{path}.name is required", param=f"{path}.name", code="missing_required_parameter")
        name = toolbox.name(asked.name, asked.namespace)
        if name not in toolbox.functions:
            raise MalformedRequest(f"{path}.name: no tool of that name is offered", param=f"{path}.name")
        return name
    return asked.type if asked.type in toolbox.functions else None
