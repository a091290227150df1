"""A chat stream as the stream of a message.

Anthropic's blocks follow one another, while chat may write several tool calls at once. The block that is open is
written as it arrives; what belongs to a later one is kept until its turn. Calls that come one after the other, as
engines write them, are all written as they arrive: the next one begins when the arguments before it are whole.
"""

from __future__ import annotations

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.anthropic.answer_from_chat import is_object
from gateway.wire.anthropic.chat_answer import Call, ChatChunk, Choice, Delta, stopped_by, text_of
from gateway.wire.anthropic.engine_json import read_engine
from gateway.wire.anthropic.events import block_start, block_stop, framed, input_delta, text_delta, thinking_delta
from gateway.wire.anthropic.request_to_chat import Asked
from gateway.wire.anthropic.stop_reason import stop_reason
from gateway.wire.anthropic.usage import usage_figures
from gateway.wire.translation import Stamp
from gateway.wire.usage import UsageTally

__all__ = ["MessageWriter"]

_CHUNK = msgspec.json.Decoder(ChatChunk)
_NO_CHUNK = (b"[DONE]", b"null", b"")
_DELTAS = {"text": text_delta, "thinking": thinking_delta, "tool_use": input_delta}
_MOST_CALLS = 1024
"""Tool calls of one answer; more are no answer of a model."""


class _Block:
    """One block. `queue`: pieces that the client does not have yet; `whole`: all pieces of a tool's input."""

    __slots__ = ("begun", "closed", "id", "kind", "name", "number", "queue", "whole")

    def __init__(self, kind: str, number: int | None = None) -> None:
        self.kind = kind
        self.number = number  # the index of a tool call
        self.id: str | None = None
        self.name: str | None = None
        self.queue: list[str] = []
        self.whole: list[str] = []
        self.begun = self.closed = False


class MessageWriter:
    """Writes a message as its chat chunks arrive; `context` is what `to_chat` gave. A StreamWriter.

    How long the prompt was is known at the end only: `message_start` says 0 and `message_delta` the figures, which
    clients let count.
    """

    __slots__ = (
        "_blocks",
        "_calls",
        "_finish",
        "_looked",
        "_met",
        "_open",
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
        self._blocks: list[_Block] = []
        self._calls: list[_Block] = []
        self._open = 0  # the block that is being written; those before it are closed
        self._looked = (0, 0)  # the open block and how many there were when its input was last looked at
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
        return self._start() + self._write()

    def end(self) -> bytes:
        """The rest of the blocks, why the answer ended, what it cost, and `message_stop`."""
        if not self._blocks:
            self._blocks.append(_Block("text"))
        events = [self._start(), self._write()]
        while self._open < len(self._blocks):
            events.append(self._close())
            events.append(self._write())
        reason = stop_reason(self._finish, calls=bool(self._calls), refused=self._refused, stopped_by=self._met)
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
            self._text("thinking", thought)
        text = delta.content if isinstance(delta.content, str) else text_of(delta.content)
        if text:
            self._text("text", text)
        if delta.refusal:
            self._refused = True
            self._text("text", delta.refusal)
        for call in delta.tool_calls or ():
            self._call(call)

    def _text(self, kind: str, text: str) -> None:
        if not self._blocks or self._blocks[-1].kind != kind:
            self._blocks.append(_Block(kind))
        self._blocks[-1].queue.append(text)

    def _call(self, call: Call) -> None:
        function = call.function
        name = function.name if function is not None else None
        block = self._block_of(call, name)
        block.id = block.id or call.id
        block.name = block.name or name
        arguments = function.arguments if function is not None else None
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        if not arguments:
            return
        if not isinstance(arguments, str):
            raise StreamBroken("the engine sent arguments that are no text")
        if not block.closed:
            block.queue.append(arguments)
            block.whole.append(arguments)
        elif arguments.strip():
            raise StreamBroken("the engine went on with arguments that were whole")

    def _block_of(self, call: Call, name: str | None) -> _Block:
        for block in reversed(self._calls):
            if call.index is None:  # some engines leave it out: what has neither an id nor a name goes on
                if (call.id == block.id) if call.id is not None else not name:
                    return block
            elif call.index == block.number:
                if call.id and name and block.id and call.id != block.id:
                    break  # Ollama has numbered every call 0
                return block
        if len(self._calls) >= _MOST_CALLS:
            raise StreamBroken(f"the engine sent more than {_MOST_CALLS} tool calls")
        block = _Block("tool_use", call.index)
        self._blocks.append(block)
        self._calls.append(block)
        return block

    def _write(self) -> bytes:
        # What may be written now: pieces of the open block, and of those after it once it is known to be whole.
        events: list[bytes] = []
        while self._open < len(self._blocks):
            block = self._blocks[self._open]
            if block.name or block.kind != "tool_use":
                if not block.begun:
                    events.append(self._begin(block))
                write = _DELTAS[block.kind]
                events += [write(self._open, piece) for piece in block.queue]
                block.queue.clear()
            if self._open + 1 == len(self._blocks) or not self._is_whole(block):
                break
            events.append(self._close())
        return b"".join(events)

    def _is_whole(self, block: _Block) -> bool:
        if block.kind != "tool_use":
            return True
        looked = (self._open, len(self._blocks))
        if looked == self._looked:  # once for every block that comes after it: inputs may be long
            return False
        self._looked = looked
        return block.begun and is_object("".join(block.whole))

    def _begin(self, block: _Block) -> bytes:
        block.begun = True
        if block.kind == "text":
            return block_start(self._open, {"type": "text", "text": ""})
        if block.kind == "thinking":
            return block_start(self._open, {"type": "thinking", "thinking": "", "signature": ""})
        call_id = block.id or f"toolu_{self._stamp.id}_{self._open}"
        return block_start(self._open, {"type": "tool_use", "id": call_id, "name": block.name, "input": {}})

    def _close(self) -> bytes:
        block = self._blocks[self._open]
        if not block.begun:
            raise StreamBroken("the engine sent a tool call without a name")
        block.closed = True
        self._open += 1
        return block_stop(self._open - 1)
