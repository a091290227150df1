"""Tool calls: their arguments are objects in Ollama's API, and JSON in a string in chat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from gateway.errors import StreamBroken
from gateway.wire.whole_calls import whole_arguments, whole_calls

__all__ = ["arguments_of", "ollama_calls"]


class _Named(Protocol):
    """A call that the engine has named, or not."""

    @property
    def id(self) -> str | None:
        """What the engine calls it."""


_C = TypeVar("_C", bound=_Named)


def arguments_of(text: object) -> Any:
    """The arguments of a call of the conversation so far as an object, with the bytes that the model wrote.

    What is none (a model's mistake) stands as `{"arguments": text}`: it can't be held otherwise. Raises StreamBroken
    for what is no text.
    """
    try:
        return whole_arguments(text)
    except StreamBroken:
        if not isinstance(text, str):
            raise
        return {"arguments": text}


def ollama_calls(
    calls: Sequence[_C], finish: str | None, made: str, told: Callable[[_C], tuple[str | None, object]]
) -> list[dict[str, Any]]:
    """The calls of an answer, as `whole_calls` lets them pass; `made` is what missing ids are made of."""
    return [
        {"id": call.id or f"call_{made}_{index}", "function": {"index": index, "name": name, "arguments": arguments}}
        for index, (call, name, arguments) in enumerate(whole_calls(calls, finish, told))
    ]
