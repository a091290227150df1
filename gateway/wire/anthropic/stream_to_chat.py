"""The stream of a message as a chat stream."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.anthropic.message_answer import Delta, Event
from gateway.wire.anthropic.stop_reason import finish_reason
from gateway.wire.anthropic.usage import MessagesTally
from gateway.wire.chat_writing import ChatChunks, chat_usage
from gateway.wire.engine_json import read_engine
from gateway.wire.raw_members import encode
from gateway.wire.translation import Stamp

__all__ = ["ChatWriter"]


class _Started(msgspec.Struct):
    usage: Any = None


class _Block(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None


_EVENT = msgspec.json.Decoder(Event)
_STARTED = msgspec.json.Decoder(_Started)
_BLOCK = msgspec.json.Decoder(_Block)


class ChatWriter:
    """Writes chat chunks as a message's events arrive; `context` is what `from_chat` gave. A StreamWriter."""

    __slots__ = ("_bare", "_calls", "_chunks", "_finish", "_tally")

    def __init__(self, context: object, stamp: Stamp) -> None:
        self._chunks = ChatChunks(context, stamp)
        self._calls: dict[int, int] = {}  # the index of a block to that of its tool call
        self._bare: set[int] = set()  # blocks of calls without any input so far
        self._finish: str | None = None
        self._tally = MessagesTally()

    def feed(self, data: bytes) -> bytes:
        """Take one event's JSON; return the chunks that it gives. Raises StreamBroken for what is no event."""
        if data.strip() in (b"[DONE]", b"null", b""):
            return b""
        event = read_engine(_EVENT, data, "event of a message")
        if event.type == "content_block_delta":
            return self._chunks.start() + self._piece(event)
        if event.type == "message_start":
            if bytes(event.message):
                self._tally.add(read_engine(_STARTED, event.message, "message").usage)
            return self._chunks.start()
        if event.type == "content_block_start":
            return self._chunks.start() + self._begin(event)
        if event.type == "content_block_stop":
            return self._empty(event.index)
        if event.type == "message_delta":
            self._tally.add(event.usage)
            if event.delta is not None and event.delta.stop_reason is not None:
                self._finish = finish_reason(event.delta.stop_reason)
        elif event.type == "error":
            raise StreamBroken("the engine sent an error in place of an event")
        return b""

    def end(self) -> bytes:
        """Why the answer ended, what it cost if that was asked for, and `[DONE]`."""
        reason = self._finish or ("tool_calls" if self._calls else "stop")
        return self._chunks.end(reason, chat_usage(self._tally.total))

    def _begin(self, event: Event) -> bytes:
        if not bytes(event.content_block):
            return b""
        block = read_engine(_BLOCK, event.content_block, "content block")
        if block.type == "text" and block.text:
            return self._chunks.chunk({"content": block.text})
        if block.type == "thinking" and block.thinking:
            return self._chunks.chunk({"reasoning_content": block.thinking})
        if block.type != "tool_use":
            return b""
        if not block.name:
            raise StreamBroken("the engine sent a tool call without a name")
        number = self._calls[event.index] = len(self._calls)
        arguments = encode(block.input).decode() if block.input else ""
        if not arguments:
            self._bare.add(event.index)
        function = {"name": block.name, "arguments": arguments}
        call = {"index": number, "id": block.id or f"call_{number}", "type": "function", "function": function}
        return self._chunks.chunk({"tool_calls": [call]})

    def _piece(self, event: Event) -> bytes:
        delta = event.delta or Delta()
        if delta.text:
            return self._chunks.chunk({"content": delta.text})
        if delta.thinking:
            return self._chunks.chunk({"reasoning_content": delta.thinking})
        number = self._calls.get(event.index)
        if delta.partial_json and number is not None:
            self._bare.discard(event.index)
            call = {"index": number, "function": {"arguments": delta.partial_json}}
            return self._chunks.chunk({"tool_calls": [call]})
        return b""

    def _empty(self, index: int) -> bytes:
        """The arguments of a call that ended without any: an empty object, as in chat."""
        if index not in self._bare:
            return b""
        self._bare.discard(index)
        return self._chunks.chunk({"tool_calls": [{"index": self._calls[index], "function": {"arguments": "{}"}}]})
