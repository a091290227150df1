"""What is read of an engine's own response, whole or an event of a stream, to write it as chat."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.chat_writing import chat_usage
from gateway.wire.usage import Usage

__all__ = ["Content", "Item", "Response", "tool_call", "usage_told"]


class Content(msgspec.Struct, gc=False):
    """A part of an item's content or summary."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    logprobs: Any = None


class Item(msgspec.Struct, gc=False):
    """One item of the output."""

    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Any = None
    input: Any = None
    content: list[Content] | None = None
    summary: list[Content] | None = None


class Response(msgspec.Struct):
    """The response object."""

    output: list[Item] = []
    status: str | None = None
    usage: Any = None
    error: Any = None
    incomplete_details: Any = None


def tool_call(item: Item, fallback_id: str) -> dict[str, Any] | None:
    """The tool call that an item is, in chat's shape; None for an item of another kind. Raises StreamBroken."""
    if item.type not in ("function_call", "custom_tool_call"):
        return None
    if not item.name:
        raise StreamBroken("the engine sent a tool call without a name")
    call_id = item.call_id or item.id or fallback_id
    if item.type == "custom_tool_call":
        return {"id": call_id, "type": "custom", "custom": {"name": item.name, "input": _text(item.input)}}
    return {"id": call_id, "type": "function", "function": {"name": item.name, "arguments": _text(item.arguments)}}


def _text(told: object) -> str:
    if told is None:
        return ""
    if not isinstance(told, str):
        raise StreamBroken("the engine sent arguments that are no text")
    return told


def usage_told(usage: Usage | None, told: object) -> dict[str, Any]:
    """The `usage` of a chat answer, with the tokens of reasoning in it; `told` is the response's own."""
    figures = chat_usage(usage)
    details = told.get("output_tokens_details") if isinstance(told, dict) else None
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    if type(reasoning) is int and 0 <= reasoning <= figures["completion_tokens"]:
        figures["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return figures
