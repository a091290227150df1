"""A whole chat answer as a message."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.anthropic.request_to_chat import Asked
from gateway.wire.anthropic.stop_reason import stop_reason, stopped_by
from gateway.wire.anthropic.usage import usage_figures
from gateway.wire.chat_answer import Call, Delta, read_chat, text_of, usage_in
from gateway.wire.json_object import is_object
from gateway.wire.translation import Stamp
from gateway.wire.usage import usage_of

__all__ = ["answer"]


def answer(body: bytes, context: object, stamp: Stamp) -> bytes:
    """The first choice as a message; `context` is what `to_chat` gave.

    Arguments that are no JSON object (a model's mistake, or cut by the output budget) stand as `{"arguments": text}`:
    a message can't hold them otherwise, and a tool that checks its input will say so to the model. An answer without
    any content gets one empty text block, since clients read the first one. Raises StreamBroken for what is no answer.
    """
    told, choice = read_chat(body)
    message = choice.message or Delta()
    blocks: list[dict[str, Any]] = []
    thought = message.reasoning_content or message.reasoning
    if thought:
        blocks.append({"type": "thinking", "thinking": thought, "signature": ""})
    text = text_of(message.content) or message.refusal
    if text:
        blocks.append({"type": "text", "text": text})
    calls = message.tool_calls or []
    blocks += [_tool_use(call, index, stamp) for index, call in enumerate(calls)]
    stops = context.stops if isinstance(context, Asked) else ()
    met = stopped_by(choice, stops)
    refused = bool(message.refusal) and not message.content
    reason = stop_reason(choice.finish_reason, calls=bool(calls), refused=refused, stopped_by=met)
    usage = usage_of(usage_in(told))
    return msgspec.json.encode(
        {
            "id": f"msg_{stamp.id}",
            "type": "message",
            "role": "assistant",
            "model": stamp.model,
            "content": blocks or [{"type": "text", "text": ""}],
            "stop_reason": reason,
            "stop_sequence": met if reason == "stop_sequence" else None,
            "usage": usage_figures(usage),
        }
    )


def _tool_use(call: Call, index: int, stamp: Stamp) -> dict[str, Any]:
    function = call.function
    if function is None or not function.name:
        raise StreamBroken("the engine sent a tool call without a name")
    return {
        "type": "tool_use",
        "id": call.id or f"toolu_{stamp.id}_{index}",
        "name": function.name,
        "input": _input(function.arguments),
    }


def _input(arguments: object) -> object:
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, dict):  # engines of the first hour
        return arguments
    if isinstance(arguments, str) and is_object(arguments):
        return msgspec.Raw(arguments.encode())
    return {"arguments": arguments}
