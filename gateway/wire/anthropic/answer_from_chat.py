"""A whole chat answer as a message."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.wire.anthropic.request_to_chat import Asked
from gateway.wire.anthropic.stop_reason import stop_reason, stopped_by
from gateway.wire.anthropic.usage import usage_figures
from gateway.wire.chat_answer import Delta, name_and_arguments, read_chat, text_of, usage_in
from gateway.wire.translation import Stamp
from gateway.wire.usage import usage_of
from gateway.wire.whole_calls import whole_calls

__all__ = ["answer"]


def answer(body: bytes, context: object, stamp: Stamp) -> bytes:
    """The first choice as a message; `context` is what `to_chat` gave.

    A call that the output budget cut off is left out. An answer without any content gets one empty text block, since
    clients read the first one. Raises StreamBroken for what is no answer, or a call whose arguments are no JSON object.
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
    calls = whole_calls(message.calls, choice.finish_reason, name_and_arguments)
    blocks += [
        {"type": "tool_use", "id": call.id or f"toolu_{stamp.id}_{index}", "name": name, "input": arguments}
        for index, (call, name, arguments) in enumerate(calls)
    ]
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
