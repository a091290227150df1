"""What is read of a message, whole or an event of its stream."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["Delta", "Event", "Message"]


class Delta(msgspec.Struct, gc=False):
    """A piece of a block, or what `message_delta` says."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class Message(msgspec.Struct):
    """A message; in `message_start` without content."""

    content: list[msgspec.Raw]
    stop_reason: str | None = None
    usage: Any = None
    error: Any = None


class Event(msgspec.Struct, gc=False):
    """One event of a stream."""

    type: str
    index: int = 0
    message: msgspec.Raw = msgspec.Raw(b"")
    content_block: msgspec.Raw = msgspec.Raw(b"")
    delta: Delta | None = None
    usage: Any = None
