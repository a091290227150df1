"""Show the name that the client asked for in place of the engine's, in every chunk of a stream."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.members import engine_members
from gateway.wire.sse import data_of

__all__ = ["ModelAlias"]


class ModelAlias:
    """Swaps `"model": "<the engine's name>"`, which is the same bytes in every chunk, for one with `alias`."""

    __slots__ = ("_alias", "_served", "_shown")

    def __init__(self, alias: str) -> None:
        self._alias = msgspec.json.encode(alias)
        self._served = self._shown = b""

    def event(self, event: bytes) -> bytes:
        """The event with the alias; one without a top-level `model` stays as it is."""
        if self._served and self._served in event:
            return event.replace(self._served, self._shown, 1)
        data = data_of(event) or b""
        try:
            found = engine_members(data)
        except MalformedRequest:  # no event with a model in it
            return event
        for member in found:
            if member.key == "model":
                self._served = data[member.key_start : member.value_end]
                self._shown = data[member.key_start : member.value_start] + self._alias
                return event.replace(self._served, self._shown, 1)
        return event

    def part(self, part: bytes) -> bytes:
        """A piece of an event that `event` has seen before."""
        return part.replace(self._served, self._shown, 1) if self._served else part
