"""A whole message as a chat answer."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.anthropic.message_answer import Message
from gateway.wire.anthropic.stop_reason import finish_reason
from gateway.wire.anthropic.usage import messages_usage
from gateway.wire.chat_writing import chat_answer, chat_usage
from gateway.wire.engine_json import read_engine
from gateway.wire.translation import Stamp

__all__ = ["answer"]


class _Block(msgspec.Struct, gc=False):
    type: str
    text: str = ""
    thinking: str = ""
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"")


_MESSAGE = msgspec.json.Decoder(Message)
_BLOCK = msgspec.json.Decoder(_Block)


def answer(body: bytes, _context: object, stamp: Stamp) -> bytes:
    """The message as a chat answer with one choice. Raises StreamBroken for what is no message.

    Texts become one, as the parts of one answer that they are; thinking becomes `reasoning_content`. Blocks of tools
    that Anthropic ran have no counterpart and are left out.
    """
    told = read_engine(_MESSAGE, body, "message")
    if told.error:
        raise StreamBroken("the engine's answer is an error")
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for raw in told.content:
        block = read_engine(_BLOCK, raw, "content block")
        if block.type == "text":
            texts.append(block.text)
        elif block.type == "thinking":
            thoughts.append(block.thinking)
        elif block.type == "tool_use":
            calls.append(_call(block, len(calls), stamp))
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts or not calls else None}
    if any(thoughts):
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    reason = finish_reason(told.stop_reason) or ("tool_calls" if calls else "stop")
    return chat_answer(stamp, message, reason, chat_usage(messages_usage(told.usage)))


def _call(block: _Block, index: int, stamp: Stamp) -> dict[str, Any]:
    if not block.name:
        raise StreamBroken("the engine sent a tool call without a name")
    arguments = bytes(block.input).decode("utf-8", "replace") or "{}"
    return {
        "id": block.id or f"call_{stamp.id}_{index}",
        "type": "function",
        "function": {"name": block.name, "arguments": arguments},
    }
