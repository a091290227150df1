"""A chat stream as the stream of a response."""

from __future__ import annotations

from typing import Any

from gateway.errors import GatewayError
from gateway.wire.chat_answer import read_chunk, usage_in
from gateway.wire.responses.asked import asked_of
from gateway.wire.responses.errors import Begun, error_event
from gateway.wire.responses.grown import Repeating
from gateway.wire.responses.log_probabilities import log_probabilities
from gateway.wire.responses.output import Output
from gateway.wire.responses.response_object import INCOMPLETE, response_object, usage_figures
from gateway.wire.translation import Stamp
from gateway.wire.usage import UsageTally

__all__ = ["ResponseWriter"]


class _Events:
    """Events as they are numbered, until they are taken. Not the writer itself: a cycle would keep a long answer."""

    __slots__ = ("_repeating", "_written", "encode", "number")

    def __init__(self) -> None:
        self._repeating = Repeating()
        self._written: list[bytes] = []
        self.encode = self._repeating.encode
        self.number = 0

    def emit(self, kind: str, members: dict[str, Any]) -> None:
        data = self.encode({"type": kind, "sequence_number": self.number, **members})
        self.number += 1
        self._written += self._repeating.pieces(b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n")

    def taken(self) -> list[bytes]:
        written, self._written = self._written, []
        return written


class ResponseWriter:
    """Writes a response as its chat chunks arrive; `context` is what `to_chat` gave. A GrowingWriter."""

    __slots__ = ("_asked", "_events", "_finish", "_output", "_stamp", "_tally", "_told")

    def __init__(self, context: object, stamp: Stamp) -> None:
        self._asked = asked_of(context)
        self._stamp = stamp
        self._events = _Events()
        self._output = Output(self._asked, stamp, self._events.emit)
        self._finish: str | None = None
        self._tally = UsageTally()
        self._told: object = None

    @property
    def held(self) -> int:
        """Bytes that are kept of the answer: it is said again at its end."""
        return self._output.held

    def feed(self, data: bytes) -> bytes:
        """`feed_pieces` in one."""
        return b"".join(self.feed_pieces(data))

    def end(self) -> bytes:
        """`end_pieces` in one."""
        return b"".join(self.end_pieces())

    def feed_pieces(self, data: bytes) -> list[bytes]:
        """Take one chunk's JSON; return the events that it gives. Raises StreamBroken for what is no chunk."""
        chunk = read_chunk(data)
        if chunk is None:
            return []
        self._begin()
        self._tally.add(usage_in(chunk), 0)
        self._told = chunk.usage or self._told
        for choice in chunk.choices or ():
            if choice.index:
                continue
            if choice.delta is not None:
                logprobs = log_probabilities(choice.logprobs) if self._asked.logprobs else []
                self._output.take(choice.delta, logprobs)
            self._finish = choice.finish_reason or self._finish
        return self._events.taken()

    def end_pieces(self) -> list[bytes]:
        """What ends the items that are open, and the response as a whole. Raises StreamBroken for a nameless call."""
        self._begin()
        reason = INCOMPLETE.get(self._finish or "")
        status = "completed" if reason is None else "incomplete"
        output = self._output.finish(status)
        usage = usage_figures(self._tally.total, self._told)
        self._events.emit(
            f"response.{status}",
            {"response": response_object(self._asked, self._stamp, status, output, usage, reason, self._events.encode)},
        )
        return self._events.taken()

    def failure(self, error: GatewayError) -> bytes:
        """The error, as the events that come next; the response has begun with them if not before."""
        self._begin()
        stamp = self._stamp
        return b"".join(self._events.taken()) + error_event(
            error, Begun(self._events.number, f"resp_{stamp.id}", stamp.model, stamp.created)
        )

    def _begin(self) -> None:
        if not self._events.number:
            response = response_object(self._asked, self._stamp, "in_progress")
            self._events.emit("response.created", {"response": response})
            self._events.emit("response.in_progress", {"response": response})
