"""Tool calls: their arguments are objects in Ollama's API, and JSON in a string in chat."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.json_object import is_object

__all__ = ["arguments_of", "ollama_call"]


_ON_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
"""Inside of strings JSON has no bare line ends."""


def arguments_of(text: object) -> Any:
    """The arguments as an object, with the bytes that the model wrote.

    What is none (a model's mistake, or cut by the output budget) stands as `{"arguments": text}`: it can't be held
    otherwise, and a tool that checks its input will say so to the model.
    """
    if isinstance(text, dict):  # engines of the first hour
        return text
    if text is None or (isinstance(text, str) and not text.strip()):
        return {}
    if not isinstance(text, str):
        raise StreamBroken("the engine sent arguments that are no text")
    if not is_object(text):
        return {"arguments": text}
    data = text.encode()
    return msgspec.Raw(data.translate(_ON_ONE_LINE) if b"\n" in data or b"\r" in data else data)


def ollama_call(index: int, call_id: str, name: str | None, arguments: object) -> dict[str, Any]:
    """One call. Raises StreamBroken for one without a name, or with arguments that are neither text nor object."""
    if not name:
        raise StreamBroken("the engine sent a tool call without a name")
    return {"id": call_id, "function": {"index": index, "name": name, "arguments": arguments_of(arguments)}}
