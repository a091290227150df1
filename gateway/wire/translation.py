"""How a request in one dialect is served by an engine that speaks another: the parts of a translation.

Chat completions are the hub: every other surface translates to it and from it. Translations never look at a clock or
a random source; what needs one comes as a `Stamp`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

__all__ = ["GrowingWriter", "Stamp", "StreamWriter", "Translated", "Translation"]


@dataclass(frozen=True, slots=True)
class Stamp:
    """What an answer of our own making is marked with.

    id: fresh for each answer, letters and digits only; ids of its parts are made from it (`f"msg_{id}"`). created: Unix
    seconds. model: the name that the client knows. stream: the client asked for a stream.
    """

    id: str
    created: int
    model: str
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Translated:
    """A request's body in another dialect.

    lost: members that the other dialect has no way to say and without which the answer would not be what was asked for
    (`tools[2].type=web_search`), as paths for an error message: such a request is not served in translation. What
    merely hints (cache marks, metadata, service tiers) is left out silently. context: what the answer's translation
    must know of the request, small, opaque to everybody else.
    """

    body: bytes = field(repr=False)
    lost: tuple[str, ...] = ()
    context: object = None


class StreamWriter(Protocol):
    """Writes an answer in the client's dialect while it arrives in the engine's."""

    def feed(self, data: bytes) -> bytes:
        """Take the data of one event (JSON, without framing); return whole events for the client, framed, or none.

        Raises StreamBroken for what is no event of that dialect.
        """

    def end(self) -> bytes:
        """The client's final events, terminal one included; called once, after the engine's answer is whole."""


@runtime_checkable
class GrowingWriter(Protocol):
    """A writer that keeps what it has written, to say it again. Long values are pieces of their own, never joined."""

    @property
    def held(self) -> int:
        """Bytes that are kept of the answer."""

    def feed_pieces(self, data: bytes) -> list[bytes]:
        """As `StreamWriter.feed`."""

    def end_pieces(self) -> list[bytes]:
        """As `StreamWriter.end`."""


class Translation(Protocol):
    """One client surface over one spoken surface."""

    def request(self, body: bytes) -> Translated:
        """The body for the engine. Raises MalformedRequest where it is not valid in the client's own dialect."""

    def answer(self, body: bytes, context: object, stamp: Stamp) -> bytes:
        """A whole answer, as JSON in the client's dialect. Raises StreamBroken for what is no answer."""

    def writer(self, context: object, stamp: Stamp) -> StreamWriter:
        """The writer of one streamed answer."""
