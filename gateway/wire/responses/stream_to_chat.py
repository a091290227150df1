"""The stream of a response as a chat stream."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from gateway.errors import StreamBroken
from gateway.wire.chat_writing import ChatChunks
from gateway.wire.engine_json import read_engine
from gateway.wire.responses.ending import finish_reason
from gateway.wire.responses.log_probabilities import log_probabilities
from gateway.wire.responses.native_answer import Item, Response, tool_call, usage_told
from gateway.wire.responses.usage import response_usage
from gateway.wire.translation import Stamp

__all__ = ["ChatWriter"]

_TEXTS = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_content",
    "response.reasoning_summary_text.delta": "reasoning_content",
}
_ARGUMENTS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_ENDS = ("response.completed", "response.incomplete", "response.cancelled")
_FAILURES = ("error", "response.failed")


class _Event(msgspec.Struct, gc=False):
    type: str
    delta: Any = None
    item: Item | None = None
    item_id: str | None = None
    output_index: int | None = None
    logprobs: Any = None
    response: Response | None = None
    timings: Any = None


_EVENT = msgspec.json.Decoder(_Event)


class _Call:
    """A tool call: its number in chat, its kind, and how many characters of its arguments were written."""

    __slots__ = ("custom", "number", "written")

    def __init__(self, number: int, *, custom: bool) -> None:
        self.number = number
        self.custom = custom
        self.written = 0


class ChatWriter:
    """Writes chat chunks as a response's events arrive; `context` is what `from_chat` gave. A StreamWriter.

    Reasoning is written once: as it is, or its summary where the engine tells no more.
    """

    __slots__ = ("_calls", "_chunks", "_end", "_number", "_raw_thoughts")

    def __init__(self, context: object, stamp: Stamp) -> None:
        self._chunks = ChatChunks(context, stamp)
        self._number = 0
        self._raw_thoughts = False
        self._calls: dict[str | int, _Call] = {}  # by every name that events have for them
        self._end: _Event | None = None

    def feed(self, data: bytes) -> bytes:
        """Take one event's JSON; return the chunks that it gives. Raises StreamBroken for what is no event."""
        if data.strip() in (b"[DONE]", b"null", b""):
            return b""
        event = read_engine(_EVENT, data, "event of a response")
        if event.type in _TEXTS:
            return self._chunks.start() + self._text(event)
        if event.type in _ARGUMENTS:
            return self._chunks.start() + self._fragment(event)
        if event.type == "response.output_item.added" and event.item is not None:
            return self._chunks.start() + self._begin(event, event.item)
        if event.type == "response.output_item.done" and event.item is not None:
            return self._chunks.start() + self._done(event, event.item)
        if event.type in _ENDS:
            self._end = event
        elif event.type in _FAILURES:
            raise StreamBroken("the engine sent an error in place of an event")
        return self._chunks.start() if event.type == "response.created" else b""

    def end(self) -> bytes:
        """Why the answer ended, what it cost if that was asked for, and `[DONE]`."""
        response = (self._end.response if self._end is not None else None) or Response()
        ended = {"status": response.status, "incomplete_details": response.incomplete_details, "output": []}
        reason = finish_reason(ended) or "stop"
        if reason == "stop" and self._number:
            reason = "tool_calls"
        usage = response_usage(response.usage, self._end.timings if self._end is not None else None)
        return self._chunks.end(reason, usage_told(usage, response.usage))

    def _text(self, event: _Event) -> bytes:
        if not isinstance(event.delta, str):
            raise StreamBroken("the engine sent a piece of text that is none")
        if event.type == "response.reasoning_text.delta":
            self._raw_thoughts = True
        elif event.type == "response.reasoning_summary_text.delta" and self._raw_thoughts:
            return b""
        if not event.delta:
            return b""
        found = log_probabilities({"content": event.logprobs})
        told = {"content": found, "refusal": None} if found else None
        return self._chunks.chunk({_TEXTS[event.type]: event.delta}, logprobs=told)

    def _begin(self, event: _Event, item: Item) -> bytes:
        if event.type == "response.output_item.added":  # its arguments follow
            item = structs.replace(item, arguments="", input="")
        told = tool_call(item, f"call_{self._number}")
        if told is None:
            return b""
        call = _Call(self._number, custom=item.type == "custom_tool_call")
        self._number += 1
        # llama.cpp tells no indices and names the item by its call's id.
        names = (item.id, item.call_id, event.output_index)
        self._calls |= {name: call for name in names if name is not None}
        call.written = len(told["custom"]["input"] if call.custom else told["function"]["arguments"])
        return self._chunks.chunk({"tool_calls": [{"index": call.number, **told}]})

    def _fragment(self, event: _Event) -> bytes:
        if not isinstance(event.delta, str):
            raise StreamBroken("the engine sent arguments that are no text")
        call = self._call_of(event.item_id, event.output_index)
        if call is None:
            raise StreamBroken("the engine sent arguments of a call that has not begun")
        return self._arguments(call, event.delta)

    def _done(self, event: _Event, item: Item) -> bytes:
        # Some engines tell a call when it is whole, or its arguments.
        told = tool_call(item, f"call_{self._number}")
        if told is None:
            return b""
        call = self._call_of(item.id, event.output_index) or self._call_of(item.call_id, None)
        if call is None:
            return self._begin(event, item)
        whole = (
            told["custom"]["input"] if call.custom and "custom" in told else told.get("function", {}).get("arguments")
        )
        return self._arguments(call, (whole or "")[call.written :])

    def _call_of(self, name: str | None, index: int | None) -> _Call | None:
        found = self._calls.get(name) if name is not None else None
        return found if found is not None or index is None else self._calls.get(index)

    def _arguments(self, call: _Call, fragment: str) -> bytes:
        if not fragment:
            return b""
        call.written += len(fragment)
        piece = {"custom": {"input": fragment}} if call.custom else {"function": {"arguments": fragment}}
        return self._chunks.chunk({"tool_calls": [{"index": call.number, **piece}]})
