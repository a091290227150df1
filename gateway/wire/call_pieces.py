"""Which tool call of a chat answer a piece goes on with, and what it adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.chat_answer import Call

__all__ = ["Growing", "arguments_in", "call_of", "joined_name", "name_in"]

_MOST_CALLS = 1024
"""Tool calls of one answer; more are no answer of a model."""


class Growing(Protocol):
    """A call as it has come so far: its number in chat and its id, where they are known."""

    @property
    def number(self) -> int | None:
        """The `index` of its pieces."""

    @property
    def id(self) -> str | None:
        """What the engine calls it."""


_G = TypeVar("_G", bound=Growing)


def call_of(calls: list[_G], piece: Call, begin: Callable[[int | None], _G]) -> _G:
    """The call that a piece belongs to; a new one, added to `calls`, is made of its number.

    Raises StreamBroken for more calls than an answer has.
    """
    name = name_in(piece)
    for call in reversed(calls):
        if piece.index is None:  # some engines leave it out: what has neither an id nor a name goes on
            if (piece.id == call.id) if piece.id is not None else not name:
                return call
        elif piece.index == call.number:
            if piece.id and name and call.id and piece.id != call.id:
                break  # Ollama has numbered every call 0
            return call
    if len(calls) >= _MOST_CALLS:
        raise StreamBroken(f"the engine sent more than {_MOST_CALLS} tool calls")
    calls.append(begin(piece.index))
    return calls[-1]


def joined_name(name: str | None, piece: Call) -> str | None:
    """A call's name, which may come in pieces too, with what this one adds: nothing if it repeats the name."""
    more = name_in(piece)
    return more if not name else name if not more or more == name else name + more


def name_in(piece: Call) -> str | None:
    """The name that a piece tells."""
    return piece.function.name if piece.function is not None else None


def arguments_in(piece: Call) -> str:
    """The arguments that a piece adds, as text. Raises StreamBroken for what is neither text nor an object."""
    arguments = piece.function.arguments if piece.function is not None else None
    if isinstance(arguments, dict):  # engines of the first hour
        return msgspec.json.encode(arguments).decode()
    if arguments is not None and not isinstance(arguments, str):
        raise StreamBroken("the engine sent arguments that are no text")
    return arguments or ""
