"""The output of an answer as it grows out of chat's messages, whole or in pieces."""

from __future__ import annotations

from typing import Any

from gateway.errors import StreamBroken
from gateway.wire.call_pieces import arguments_in, call_of, joined_name
from gateway.wire.chat_answer import Call, Delta, text_of
from gateway.wire.responses.asked import Asked
from gateway.wire.responses.call_items import CallItem, call_item
from gateway.wire.responses.output_items import Emit, Item, MessageItem, ReasoningItem
from gateway.wire.translation import Stamp

__all__ = ["Output"]

_PROBABLE = 80
"""Bytes of the likelihood of one token as JSON."""
_PIECE = 64
"""Bytes of a piece of text besides its own."""


class _Call:
    """A tool call of chat.

    Its name may come in pieces, until its arguments or something else begins; fragments wait until there is a name.
    """

    __slots__ = ("fragments", "id", "item", "name", "number")

    def __init__(self, number: int | None, call_id: str | None) -> None:
        self.number = number
        self.id = call_id
        self.name: str | None = None
        self.item: CallItem | None = None
        self.fragments: list[str] = []


class Output:
    """Items in the order in which they began.

    Text and reasoning end where the other or a call begins. Calls stay open until the end, since chat may write
    several at once: events name their item, so theirs alternate as chat's do.
    """

    def __init__(self, asked: Asked, stamp: Stamp, emit: Emit) -> None:
        self._asked = asked
        self._stamp = stamp
        self._emit = emit
        self._items: list[Item] = []
        self._whole: dict[int, dict[str, Any]] = {}
        self._open: MessageItem | ReasoningItem | None = None
        self._calls: list[_Call] = []
        self.held = 0
        """Bytes that are kept of the answer so as to say them again, about."""

    def take(self, delta: Delta, logprobs: list[dict[str, Any]]) -> None:
        """A message, or a piece of one. Raises StreamBroken for what is none."""
        thought = delta.reasoning_content or delta.reasoning
        if thought:
            self.held += len(thought.encode())
            self._reasoning().add(self._emit, thought)
        text = delta.content if isinstance(delta.content, str) else text_of(delta.content)
        if text:
            self.held += len(text.encode()) + _PROBABLE * sum(
                1 + len(each.get("top_logprobs", ())) for each in logprobs
            )
            self._message().add(self._emit, "output_text", text, logprobs)
        if delta.refusal:
            self.held += len(delta.refusal.encode())
            self._message().add(self._emit, "refusal", delta.refusal, [])
        for call in delta.calls:
            self._call(call)

    def finish(self, status: str) -> list[dict[str, Any]]:
        """All items as objects; the last one has the status of the answer, completed or incomplete."""
        self._begin(self._calls)
        if any(call.item is None for call in self._calls):
            raise StreamBroken("the engine sent a tool call without a name")
        last = len(self._items) - 1
        for index, item in enumerate(self._items):
            if index not in self._whole:
                self._whole[index] = item.close(self._emit, status if index == last else "completed")
        return [self._whole[index] for index in range(len(self._items))]

    def _reasoning(self) -> ReasoningItem:
        if not isinstance(self._open, ReasoningItem):
            self._begin(self._calls)
            self._close()
            index = len(self._items)
            self._open = ReasoningItem(f"rs_{self._stamp.id}_{index}", index, summary=self._asked.summary)
            self._items.append(self._open)
        return self._open

    def _message(self) -> MessageItem:
        if not isinstance(self._open, MessageItem):
            self._begin(self._calls)
            self._close()
            index = len(self._items)
            self._open = MessageItem(f"msg_{self._stamp.id}_{index}", index)
            self._items.append(self._open)
        return self._open

    def _close(self) -> None:
        if self._open is not None:
            index = self._items.index(self._open)
            self._whole[index] = self._open.close(self._emit, "completed")
            self._open = None

    def _call(self, told: Call) -> None:
        known = len(self._calls)
        call = call_of(self._calls, told, lambda number: _Call(number, told.id))
        if len(self._calls) > known:
            self._begin(self._calls[:known])
        call.id = call.id or told.id
        if call.item is None:
            call.name = joined_name(call.name, told)
        arguments = arguments_in(told)
        if arguments:
            self.held += _PIECE + 2 * len(arguments.encode())  # as it is, and as JSON
            call.fragments.append(arguments)
        if call.fragments:
            self._begin([call])
        if call.item is not None:
            for fragment in call.fragments:
                call.item.add(self._emit, fragment)
            call.fragments.clear()

    def _begin(self, calls: list[_Call]) -> None:
        """Those of these calls that have a name and are no items yet: it is whole."""
        for call in calls:
            if call.item is None and call.name:
                self._close()
                origin = self._asked.origin(call.name)
                call.item = call_item(origin, self._stamp.id, len(self._items), call.id)
                self._items.append(call.item)
                call.item.open(self._emit)
