"""Every way to spoil one place of a JSON value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["variants"]

ODD: list[Any] = [None, True, 0, -1, 2**70, 1.5, "", "x", "\ud83d", [], {}, [[]], [{}], [None], {"type": "text"}, ["x"]]


def variants(value: Any) -> Iterator[Any]:
    """The value with each place in turn replaced by each odd value, and with each member or item left out."""
    for path in _places(value):
        for odd in ODD:
            yield _changed(value, path, odd)
        if path:
            yield _without(value, path)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places(inner, (*path, index))


def _changed(value: Any, path: tuple[Any, ...], instead: Any) -> Any:
    if not path:
        return instead
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _changed(value[path[0]], path[1:], instead)
    return copy


def _without(value: Any, path: tuple[Any, ...]) -> Any:
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = _without(value[path[0]], path[1:])
    return copy
