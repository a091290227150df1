"""The blocks of a message that is being written, in the order in which they began.

Anthropic's blocks follow one another, while chat may write several tool calls at once. The block that is open is
written as it arrives; what belongs to a later one is kept until its turn. Calls that come one after the other, as
engines write them, are all written as they arrive: the next one begins when the arguments before it are whole.
"""

from __future__ import annotations

from gateway.errors import StreamBroken
from gateway.wire.anthropic.events import block_start, block_stop, input_delta, text_delta, thinking_delta
from gateway.wire.call_pieces import arguments_in, call_of, joined_name
from gateway.wire.chat_answer import Call
from gateway.wire.json_object import is_object

__all__ = ["BlockQueue"]

_DELTAS = {"text": text_delta, "thinking": thinking_delta, "tool_use": input_delta}


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


class BlockQueue:
    """Takes pieces of text, thinking and tool calls; gives events. `answer_id` makes ids of calls that have none."""

    __slots__ = ("_answer_id", "_blocks", "_calls", "_looked", "_open")

    def __init__(self, answer_id: str) -> None:
        self._answer_id = answer_id
        self._blocks: list[_Block] = []
        self._calls: list[_Block] = []
        self._open = 0  # the block that is being written; those before it are closed
        self._looked = (0, 0)  # the open block and how many there were when its input was last looked at

    @property
    def calls(self) -> bool:
        """Whether there are tool calls."""
        return bool(self._calls)

    def text(self, kind: str, text: str) -> None:
        """A piece of "text" or "thinking"."""
        if not self._blocks or self._blocks[-1].kind != kind:
            self._blocks.append(_Block(kind))
        self._blocks[-1].queue.append(text)

    def call(self, call: Call) -> None:
        """A piece of a tool call. Raises StreamBroken for what no call can go on with."""
        block = call_of(self._calls, call, self._new_call)
        block.id = block.id or call.id
        arguments = arguments_in(call)
        if not block.begun:
            block.name = joined_name(block.name, call)
        if not arguments:
            return
        if not block.closed:
            block.queue.append(arguments)
            block.whole.append(arguments)
        elif arguments.strip():
            raise StreamBroken("the engine went on with arguments that were whole")

    def write(self, *, ended: bool = False) -> bytes:
        """What may be written now: pieces of the open block, and of those after it once it is known to be whole.

        A call begins once its name is whole: with its arguments, the next block, or the end.
        """
        events: list[bytes] = []
        while self._open < len(self._blocks):
            block = self._blocks[self._open]
            named = block.begun or block.queue or ended or self._open + 1 < len(self._blocks)
            if block.kind != "tool_use" or (block.name and named):
                if not block.begun:
                    events.append(self._begin(block))
                write = _DELTAS[block.kind]
                events += [write(self._open, piece) for piece in block.queue]
                block.queue.clear()
            if self._open + 1 == len(self._blocks) or not self._is_whole(block):
                break
            events.append(self._close())
        return b"".join(events)

    def finish(self, *, cut: bool = False) -> bytes:
        """The rest: every block there is, one at least, closed.

        Of an answer that was `cut`, a call is left out that has not begun and is not whole; one that has begun stays in
        pieces. Raises StreamBroken for a call without a name, or whose input is no JSON object though nothing was cut.
        """
        self._judge(cut=cut)
        if not self._blocks:
            self._blocks.append(_Block("text"))  # clients read the first one
        events = [self.write(ended=True)]
        while self._open < len(self._blocks):
            events += [self._close(), self.write(ended=True)]
        return b"".join(events)

    def _judge(self, *, cut: bool) -> None:
        last = self._calls[-1] if self._calls else None
        for call in self._calls:
            text = "".join(call.whole)
            sound = is_object(text) if text.strip() else not (cut and call is last)
            if cut and not call.begun and not (call.name and sound):
                self._blocks.remove(call)
            elif not cut and not sound:
                raise StreamBroken("the engine sent a tool call whose arguments are no JSON object")

    def _new_call(self, number: int | None) -> _Block:
        block = _Block("tool_use", number)
        self._blocks.append(block)
        return block

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
        call_id = block.id or f"toolu_{self._answer_id}_{self._open}"
        return block_start(self._open, {"type": "tool_use", "id": call_id, "name": block.name, "input": {}})

    def _close(self) -> bytes:
        block = self._blocks[self._open]
        if not block.begun:
            raise StreamBroken("the engine sent a tool call without a name")
        block.closed = True
        self._open += 1
        return block_stop(self._open - 1)
