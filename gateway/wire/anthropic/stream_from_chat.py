"""A chat stream as the stream of a message."""

from __future__ import annotations

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.anthropic.block_queue import BlockQueue
from gateway.wire.anthropic.chat_answer import ChatChunk, Choice, Delta, stopped_by, text_of
from gateway.wire.anthropic.events import framed
from gateway.wire.anthropic.request_to_chat import Asked
from gateway.wire.anthropic.stop_reason import stop_reason
from gateway.wire.anthropic.usage import usage_figures
from gateway.wire.engine_json import read_engine
from gateway.wire.translation import Stamp
from gateway.wire.usage import UsageTally

__all__ = ["MessageWriter"]

_CHUNK = msgspec.json.Decoder(ChatChunk)
_NO_CHUNK = (b"[DONE]", b"null", b"")


class MessageWriter:
    """Writes a message as its chat chunks arrive; `context` is what `to_chat` gave. A StreamWriter.

    How long the prompt was is known at the end only: `message_start` says 0 and `message_delta` the figures, which
    clients let count.
    """

    __slots__ = (
        "_blocks",
        "_finish",
        "_met",
        "_refused",
        "_stamp",
        "_started",
        "_stops",
        "_tally",
    )

    def __init__(self, context: object, stamp: Stamp) -> None:
        self._stamp = stamp
        self._stops = context.stops if isinstance(context, Asked) else ()
        self._started = False
        self._blocks = BlockQueue(stamp.id)
        self._finish: str | None = None
        self._met: str | None = None
        self._refused = False
        self._tally = UsageTally()

    def feed(self, data: bytes) -> bytes:
        """Take one chunk's JSON; return the events that it gives. Raises StreamBroken for what is no chunk."""
        if data.strip() in _NO_CHUNK:
            return b""
        chunk = read_engine(_CHUNK, data, "chat chunk")
        if chunk.error:
            raise StreamBroken("the engine sent an error in place of a chunk")
        if chunk.usage is not None or chunk.timings is not None:
            self._tally.add({"usage": chunk.usage, "timings": chunk.timings}, 0)
        for choice in chunk.choices or ():
            if not choice.index:
                self._take(choice)
        return self._start() + self._blocks.write()

    def end(self) -> bytes:
        """The rest of the blocks, why the answer ended, what it cost, and `message_stop`."""
        events = [self._start(), self._blocks.finish()]
        reason = stop_reason(self._finish, calls=self._blocks.calls, refused=self._refused, stopped_by=self._met)
        delta = {"stop_reason": reason, "stop_sequence": self._met if reason == "stop_sequence" else None}
        events.append(framed("message_delta", {"delta": delta, "usage": usage_figures(self._tally.total)}))
        events.append(framed("message_stop", {}))
        return b"".join(events)

    def _start(self) -> bytes:
        if self._started:
            return b""
        self._started = True
        message: dict[str, object] = {
            "id": f"msg_{self._stamp.id}",
            "type": "message",
            "role": "assistant",
            "model": self._stamp.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_figures(None),
        }
        return framed("message_start", {"message": message})

    def _take(self, choice: Choice) -> None:
        delta = choice.delta
        if delta is not None:
            self._take_delta(delta)
        if choice.finish_reason is not None:
            self._finish = choice.finish_reason
            self._met = stopped_by(choice, self._stops)

    def _take_delta(self, delta: Delta) -> None:
        thought = delta.reasoning_content or delta.reasoning
        if thought:
            self._blocks.text("thinking", thought)
        text = delta.content if isinstance(delta.content, str) else text_of(delta.content)
        if text:
            self._blocks.text("text", text)
        if delta.refusal:
            self._refused = True
            self._blocks.text("text", delta.refusal)
        for call in delta.tool_calls or ():
            self._blocks.call(call)
