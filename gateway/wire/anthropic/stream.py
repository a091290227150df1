"""Watch an engine's own stream of a message go by: what each event is, and what the client gets of it.

`content_block_delta` events, nearly all of a stream, are known by their ends, like the chunks of chat, or else read
past for their syntax and told apart by substring tests: a quote inside a JSON string is escaped, so a marker with both
quotes can't come from generated text.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.anthropic.stop_reason import finish_reason
from gateway.wire.anthropic.usage import MessagesTally
from gateway.wire.chunk_shape import ChunkShape
from gateway.wire.json_object import is_object
from gateway.wire.native_stream import NativeStream, payload_of, without_data
from gateway.wire.splice import splice_path
from gateway.wire.sse import data_of
from gateway.wire.stream_view import EventKind, Seen
from gateway.wire.usage import Usage

__all__ = ["MessagesStream"]

_DELTA = b"event: content_block_delta\ndata: {"
_AT = len(_DELTA) - 1
"""Where the data of such an event begins."""
_TEXT_DELTAS = (b'"text_delta"', b'"input_json_delta"', b'"thinking_delta"')
_TEXT_MEMBERS = ("text", "partial_json", "thinking")
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


class MessagesStream(NativeStream):
    """The state of one stream, as a StreamView; it is whole when `message_stop` came and not before.

    model_alias: the name to show in `message_start` in place of the engine's, None to leave it.
    """

    __slots__ = ("_alias", "_shape", "_tally")

    def __init__(self, model_alias: str | None = None) -> None:
        super().__init__()
        self._alias = None if model_alias is None else msgspec.json.encode(model_alias)
        self._shape = ChunkShape()
        self._tally = MessagesTally()

    @property
    def usage(self) -> Usage | None:
        """The usage so far, or None when the engine told none."""
        return self._tally.total

    @property
    def terminal(self) -> bool:
        """`message_stop` came."""
        return self.done

    def _see(self, event: bytes) -> Seen:
        if self._shape.match(event) is None:
            if not _is_text_delta(event):
                return self._look(event)
            self._shape.learn(event, None)
        return self._token(event)

    def _look(self, event: bytes) -> Seen:
        data = data_of(event)
        if data is None:
            return without_data(event)
        if data.strip() in (b"[DONE]", b"null", b""):  # OpenAI's mark, which clients of this dialect stumble over
            return Seen(b"", EventKind.OTHER)
        payload = payload_of(event, data)
        return payload if isinstance(payload, Seen) else self._known(event, data, payload)

    def _known(self, event: bytes, data: bytes, payload: dict[str, Any]) -> Seen:
        kind = payload.get("type")
        if kind == "message_start":
            message = payload.get("message")
            if isinstance(message, dict):
                self._tally.add(message.get("usage"))
            return Seen(self._named(event, data, message), EventKind.ROLE)
        if kind == "content_block_start":
            return self._piece(event, payload.get("content_block"))
        if kind == "content_block_delta":
            return self._piece(event, payload.get("delta"))
        if kind == "message_delta":
            return self._ended(event, payload)
        if kind == "message_stop":
            self.done = True
            return Seen(event, EventKind.DONE)
        return Seen(event, EventKind.OTHER)

    def _piece(self, event: bytes, piece: object) -> Seen:
        if isinstance(piece, dict) and (piece.get("type") in _CALLS or any(piece.get(name) for name in _TEXT_MEMBERS)):
            return self._token(event)
        return Seen(event, EventKind.OTHER)

    def _ended(self, event: bytes, payload: dict[str, Any]) -> Seen:
        self._tally.add(payload.get("usage"))
        delta = payload.get("delta")
        reason = delta.get("stop_reason") if isinstance(delta, dict) else None
        if not isinstance(reason, str):
            return Seen(event, EventKind.USAGE)
        self.finish_reason = finish_reason(reason)
        return Seen(event, EventKind.FINISH)

    def _named(self, event: bytes, data: bytes, message: object) -> bytes:
        if self._alias is None or not isinstance(message, dict) or "model" not in message:
            return event
        try:
            named = splice_path(data, ("message", "model"), self._alias)
        except MalformedRequest:  # of more members than are looked through
            return event
        if data in event:
            return event.replace(data, named, 1)
        return b"event: message_start\ndata: " + b"\ndata: ".join(named.split(b"\n")) + b"\n\n"


def _is_text_delta(event: bytes) -> bool:
    # `""` is an empty piece, or a piece that ends with a quote: both are looked at in full.
    return (
        event.startswith(_DELTA)
        and event.endswith(b"}\n\n")
        and event.count(b"\n") == 3
        and b'""' not in event
        and b'"error"' not in event
        and any(kind in event for kind in _TEXT_DELTAS)
        and is_object(event[_AT:])
    )
