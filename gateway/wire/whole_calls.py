"""Tool calls for dialects in which their arguments are an object, out of chat's, where they are text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.json_object import is_object

__all__ = ["was_cut", "whole_arguments", "whole_calls"]

_T = TypeVar("_T")
_CUT = frozenset(("length", "content_filter"))
_ON_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
"""Inside of strings JSON has no bare line ends."""


def was_cut(finish: str | None) -> bool:
    """Whether an answer with this finish_reason may end in the middle of a call."""
    return finish in _CUT


def whole_arguments(arguments: object, *, cut: bool = False) -> Any:
    """The object, with the bytes that the model wrote on one line; {} where there are none, unless they were `cut` off.

    Raises StreamBroken for what is none: nobody may be told of a call with other arguments than the model's.
    """
    if isinstance(arguments, dict):  # engines of the first hour
        return arguments
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        if cut:
            raise StreamBroken("the engine's answer ended before a tool call's arguments")
        return {}
    if not isinstance(arguments, str):
        raise StreamBroken("the engine sent arguments that are no text")
    if not is_object(arguments):
        raise StreamBroken("the engine sent a tool call whose arguments are no JSON object")
    return msgspec.Raw(arguments.encode().translate(_ON_ONE_LINE))


def whole_calls(
    calls: Sequence[_T], finish: str | None, told: Callable[[_T], tuple[str | None, object]]
) -> list[tuple[_T, str, Any]]:
    """Each call with its name and arguments; what was cut off is left out. `told` gives a call's name and arguments.

    Raises StreamBroken where the answer was not cut and a call has no name, or arguments that are no object.
    """
    cut = was_cut(finish)
    found: list[tuple[_T, str, Any]] = []
    for number, call in enumerate(calls, 1):
        name, arguments = told(call)
        try:
            if not name:
                raise StreamBroken("the engine sent a tool call without a name")
            found.append((call, name, whole_arguments(arguments, cut=cut and number == len(calls))))
        except StreamBroken:
            if not cut:
                raise
    return found
