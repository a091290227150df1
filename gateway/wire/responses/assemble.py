"""Take out of a stream the whole answer that the same engine gives without streaming: the terminal event has it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.engine_json import UNREADABLE, json_of
from gateway.wire.responses.ending import finish_reason
from gateway.wire.responses.event import error_of
from gateway.wire.responses.usage import response_usage
from gateway.wire.splice import splice
from gateway.wire.sse import data_of
from gateway.wire.usage import Usage

__all__ = ["ResponseAssembler"]

_ENDS = (b"response.completed", b"response.incomplete", b"response.cancelled", b"response.failed", b"error")
_NO_EVENT = (b"[DONE]", b"null", b"")


class _End(msgspec.Struct):
    response: msgspec.Raw


class _Done(msgspec.Struct):
    item: msgspec.Raw
    output_index: int | None = None


_END = msgspec.json.Decoder(_End)
_DONE = msgspec.json.Decoder(_Done)


class ResponseAssembler:
    """Takes the events of one stream. The response keeps its bytes.

    Some services leave the output of the terminal event empty; then it is put together from the items that were done.
    """

    __slots__ = ("_items", "_response", "_whole", "finish_reason", "usage")

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.finish_reason: str | None = None
        self._items: list[tuple[int, msgspec.Raw]] = []
        self._response: dict[str, Any] | None = None
        self._whole = b""

    def feed(self, event: bytes) -> None:
        """Take one whole event. Raises StreamBroken for what is no event, and for one that says that it failed."""
        data = data_of(event)
        if data is None or data.strip() in _NO_EVENT:
            return
        if b'"response.output_item.done"' in data:
            self._item(data)
        elif any(b'"%b"' % end in data for end in _ENDS):
            self._end(event, data)

    def result(self) -> bytes:
        """The response as JSON. Raises StreamBroken when the terminal event did not come: a cut is no answer."""
        if self._response is None:
            raise StreamBroken("the engine's answer ended before its last event")
        if self._response.get("output") or not self._items:
            return self._whole
        items = [item for _, item in sorted(self._items, key=lambda each: each[0])]
        return splice(self._whole, {"output": msgspec.json.encode(items)})

    def _item(self, data: bytes) -> None:
        try:
            done = _DONE.decode(data)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise StreamBroken("the engine sent an event that can't be read") from error
        self._items.append((len(self._items) if done.output_index is None else done.output_index, done.item))

    def _end(self, event: bytes, data: bytes) -> None:
        payload = json_of(data)
        if payload is UNREADABLE or not isinstance(payload, dict):
            raise StreamBroken("the engine sent an event that can't be read")
        if error_of(event, payload) is not None:
            raise StreamBroken("the engine says that the response failed")
        response = payload.get("response")
        if f"{payload.get('type')}".encode() not in _ENDS or not isinstance(response, dict):
            return  # one of the words stood somewhere in another event
        try:
            self._whole = bytes(_END.decode(data).response)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            self._whole = json.dumps(response).encode()  # readable to SDKs only (NaN)
        self._response = response
        self.usage = response_usage(response.get("usage"), payload.get("timings"))
        self.finish_reason = finish_reason(response)
