"""A chat stream as the stream of a message."""

from __future__ import annotations

from gateway.wire.anthropic.block_queue import BlockQueue
from gateway.wire.anthropic.events import framed
from gateway.wire.anthropic.request_to_chat import Asked
from gateway.wire.anthropic.stop_reason import stop_reason, stopped_by
from gateway.wire.anthropic.usage import usage_figures
from gateway.wire.chat_answer import Choice, Delta, read_chunk, text_of, usage_in
from gateway.wire.translation import Stamp
from gateway.wire.usage import UsageTally
from gateway.wire.whole_calls import was_cut

__all__ = ["MessageWriter"]


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
        chunk = read_chunk(data)
        if chunk is None:
            return b""
        self._tally.add(usage_in(chunk), 0)
        for choice in chunk.choices or ():
            if not choice.index:
                self._take(choice)
        return self._start() + self._blocks.write()

    def end(self) -> bytes:
        """The rest of the blocks, why the answer ended, what it cost, and `message_stop`."""
        events = [self._start(), self._blocks.finish(cut=was_cut(self._finish))]
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
        for call in delta.calls:
            self._blocks.call(call)
