"""Watch an engine's own stream of a response go by: what each event is, and what the client gets of it.

Deltas, nearly all of a stream, are known by their ends, like the chunks of chat, or else by the name of their event;
these are read past for their syntax only.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from gateway.errors import GatewayError, MalformedRequest
from gateway.wire.engine_json import json_of
from gateway.wire.json_object import is_object
from gateway.wire.native_stream import NativeStream, payload_of, without_data
from gateway.wire.responses.delta_shape import DeltaShape
from gateway.wire.responses.ending import CALLS, finish_reason
from gateway.wire.responses.errors import Begun, error_event
from gateway.wire.responses.event import error_of
from gateway.wire.responses.usage import response_usage
from gateway.wire.splice import splice_path
from gateway.wire.sse import data_of
from gateway.wire.stream_view import EventKind, Seen
from gateway.wire.usage import Usage

__all__ = ["ResponsesStream"]

_BEGUN = ("response.created", "response.in_progress", "response.queued")
_ENDED = ("response.completed", "response.incomplete", "response.cancelled")
_EVENT = b"event: response."
_NAME_ENDS = b".delta\ndata: {"


class ResponsesStream(NativeStream):
    """The state of one stream, as a StreamView; it is whole when its terminal event came and not before.

    model_alias: the name to show in `response.model` in place of the engine's, None to leave it.
    """

    __slots__ = ("_alias", "_begun", "_last", "_shape", "_usage", "answer_id")

    def __init__(self, model_alias: str | None = None) -> None:
        super().__init__()
        self.answer_id: str | None = None
        """What the engine calls this answer, and keeps it under if it keeps any."""
        self._alias = None if model_alias is None else msgspec.json.encode(model_alias)
        self._begun: dict[str, Any] = {}  # the response as its first event told it
        self._last = b""  # the last event that was passed on
        self._shape = DeltaShape()
        self._usage: Usage | None = None

    @property
    def usage(self) -> Usage | None:
        """What the terminal event told; None before it."""
        return self._usage

    @property
    def terminal(self) -> bool:
        """The terminal event came."""
        return self.done

    def failure(self, error: GatewayError) -> bytes | None:
        """The error as the events that come next, numbered as the engine did."""
        if not self._last:
            return None
        payload = json_of(data_of(self._last) or b"")
        number = payload.get("sequence_number") if isinstance(payload, dict) else None
        created, model = self._begun.get("created_at"), self._begun.get("model")
        if self._alias is not None:
            model = msgspec.json.decode(self._alias)
        begun = Begun(
            number + 1 if isinstance(number, int) else 0,
            self.answer_id,
            model if isinstance(model, str) else "",
            int(created) if isinstance(created, int | float) and math.isfinite(created) else 0,
        )
        return error_event(error, begun)

    def _see(self, event: bytes) -> Seen:
        seen = self._seen(event)
        if seen.forward and seen.kind is not EventKind.COMMENT:
            self._last = seen.forward
        return seen

    def _seen(self, event: bytes) -> Seen:
        if not self._shape.match(event):
            if not _is_delta(event):
                return self._look(event)
            self._shape.learn(event)
        return self._token(event)

    def _look(self, event: bytes) -> Seen:
        data = data_of(event)
        if data is None:
            return without_data(event)
        if data.strip() in (b"[DONE]", b"null", b""):  # chat's mark, which is none of this dialect's
            return Seen(b"", EventKind.OTHER)
        payload = payload_of(event, data, error_of)
        return payload if isinstance(payload, Seen) else self._known(event, data, payload)

    def _known(self, event: bytes, data: bytes, payload: dict[str, Any]) -> Seen:
        kind = payload.get("type")
        if kind in _BEGUN:
            response = payload.get("response")
            self._begun = response if isinstance(response, dict) else self._begun
            named = self._begun.get("id")
            self.answer_id = named if isinstance(named, str) else self.answer_id
            return Seen(self._named(event, data, payload), EventKind.ROLE)
        if kind in _ENDED:
            self._end(payload)
            return Seen(self._named(event, data, payload), EventKind.DONE)
        if isinstance(kind, str) and kind.endswith(".delta"):
            return self._token(event) if payload.get("delta") else Seen(event, EventKind.OTHER)
        if kind == "response.output_item.added":
            item = payload.get("item")
            if isinstance(item, dict) and item.get("type") in CALLS:
                return self._token(event)
        return Seen(event, EventKind.OTHER)

    def _end(self, payload: dict[str, Any]) -> None:
        self.done = True
        response = payload.get("response")
        if isinstance(response, dict):
            self._usage = response_usage(response.get("usage"), payload.get("timings"))
            self.finish_reason = finish_reason(response)

    def _named(self, event: bytes, data: bytes, payload: dict[str, Any]) -> bytes:
        response = payload.get("response")
        if self._alias is None or not isinstance(response, dict) or response.get("model") is None:
            return event
        try:
            named = splice_path(data, ("response", "model"), self._alias)
        except MalformedRequest:  # of more members than are looked through
            return event
        if data in event:
            return event.replace(data, named, 1)
        head = b"event: " + str(payload.get("type")).encode() + b"\n"
        return head + b"\n".join(b"data: " + line for line in named.split(b"\n")) + b"\n\n"


def _is_delta(event: bytes) -> bool:
    # `""` is an empty piece, or one that ends with a quote, or an empty name: these are looked at in full.
    at = event.find(b"\n") - 6
    return (
        event.startswith(_EVENT)
        and event.startswith(_NAME_ENDS, at)
        and event.endswith(b"}\n\n")
        and event.count(b"\n") == 3
        and b'""' not in event
        and b'"error"' not in event
        and b'"delta"' in event
        and is_object(event[at + len(_NAME_ENDS) - 1 :])
    )
