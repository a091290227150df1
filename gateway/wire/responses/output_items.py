"""The items of an answer while they grow: each tells its own events and is an object once it is whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from gateway.wire.responses.grown import Grown

__all__ = ["Emit", "Item", "MessageItem", "ReasoningItem"]

Emit = Callable[[str, dict[str, Any]], None]
"""Takes an event's type and its other members."""


class Item(Protocol):
    """One item of the output."""

    def close(self, emit: Emit, status: str) -> dict[str, Any]:
        """The item is whole; status is completed, or incomplete when the answer was cut. The item as an object."""


class MessageItem:
    """What the assistant says: parts of text and of refusal."""

    __slots__ = ("_index", "_logprobs", "_opened", "_part", "_parts", "_text", "id")

    def __init__(self, item_id: str, index: int) -> None:
        self.id = item_id
        self._index = index
        self._opened = False
        self._part: str | None = None  # the type of the part that is open
        self._parts: list[dict[str, Any]] = []
        self._text = Grown()
        self._logprobs = Grown(b"[", b"]")

    def add(self, emit: Emit, kind: str, text: str, logprobs: list[dict[str, Any]]) -> None:
        """Some more text; kind is output_text or refusal."""
        if not self._opened:
            self._opened = True
            emit("response.output_item.added", {"output_index": self._index, "item": self._object("in_progress")})
        if self._part != kind:
            self._close_part(emit)
            self._part = kind
            emit("response.content_part.added", {**self._place(), "part": _part(kind, "", [])})
        self._text.add(text)
        if kind == "refusal":
            emit("response.refusal.delta", {**self._place(), "delta": text})
        else:
            self._logprobs.add(logprobs)
            emit("response.output_text.delta", {**self._place(), "delta": text, "logprobs": logprobs})

    def close(self, emit: Emit, status: str) -> dict[str, Any]:
        """The message is whole."""
        self._close_part(emit)
        item = self._object(status)
        emit("response.output_item.done", {"output_index": self._index, "item": item})
        return item

    def _close_part(self, emit: Emit) -> None:
        if self._part is None:
            return
        text = self._text
        part = _part(self._part, text, self._logprobs)
        if self._part == "refusal":
            emit("response.refusal.done", {**self._place(), "refusal": text})
        else:
            emit("response.output_text.done", {**self._place(), "text": text, "logprobs": self._logprobs})
        emit("response.content_part.done", {**self._place(), "part": part})
        self._parts.append(part)
        self._part, self._text, self._logprobs = None, Grown(), Grown(b"[", b"]")

    def _place(self) -> dict[str, Any]:
        return {"item_id": self.id, "output_index": self._index, "content_index": len(self._parts)}

    def _object(self, status: str) -> dict[str, Any]:
        content = list(self._parts)
        return {"id": self.id, "type": "message", "status": status, "role": "assistant", "content": content}


class ReasoningItem:
    """What the model thinks, as it is or in the place of a summary."""

    __slots__ = ("_index", "_opened", "_summary", "_text", "id")

    def __init__(self, item_id: str, index: int, *, summary: bool) -> None:
        self.id = item_id
        self._index = index
        self._summary = summary
        self._opened = False
        self._text = Grown()

    def add(self, emit: Emit, text: str) -> None:
        """Some more of it."""
        if not self._opened:
            self._opened = True
            emit("response.output_item.added", {"output_index": self._index, "item": self._object("in_progress", None)})
            emit(f"response.{self._parts}.added", {**self._place(), "part": self._part("")})
        self._text.add(text)
        emit(f"response.{self._texts}.delta", {**self._place(), "delta": text})

    def close(self, emit: Emit, status: str) -> dict[str, Any]:
        """The thought is whole."""
        text = self._text
        emit(f"response.{self._texts}.done", {**self._place(), "text": text})
        emit(f"response.{self._parts}.done", {**self._place(), "part": self._part(text)})
        item = self._object(status, text)
        emit("response.output_item.done", {"output_index": self._index, "item": item})
        return item

    @property
    def _texts(self) -> str:
        return "reasoning_summary_text" if self._summary else "reasoning_text"

    @property
    def _parts(self) -> str:
        return "reasoning_summary_part" if self._summary else "content_part"

    def _place(self) -> dict[str, Any]:
        number = "summary_index" if self._summary else "content_index"
        return {"item_id": self.id, "output_index": self._index, number: 0}

    def _part(self, text: str | Grown) -> dict[str, Any]:
        return {"type": "summary_text" if self._summary else "reasoning_text", "text": text}

    def _object(self, status: str, text: Grown | None) -> dict[str, Any]:
        item: dict[str, Any] = {"id": self.id, "type": "reasoning", "status": status, "summary": []}
        if text is not None:
            item["summary" if self._summary else "content"] = [self._part(text)]
        return item


def _part(kind: str, text: str | Grown, logprobs: list[dict[str, Any]] | Grown) -> dict[str, Any]:
    if kind == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}
