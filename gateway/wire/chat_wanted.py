"""What the translation of an answer to chat must know of the chat request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from gateway.wire.raw_members import read

__all__ = ["Wanted", "wanted_in"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """include_usage: the client asked for the usage at a stream's end."""

    include_usage: bool = False


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


_OPTIONS = msgspec.json.Decoder(_StreamOptions)


def wanted_in(members: Mapping[str, msgspec.Raw]) -> Wanted:
    """What the members of a chat request say of it. Raises MalformedRequest with `param`."""
    if "stream_options" not in members:
        return Wanted()
    return Wanted(bool(read(_OPTIONS, members["stream_options"], "stream_options").include_usage))
