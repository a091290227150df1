"""Two translations in a row: the client's dialect to chat completions, and those to the engine's."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.wire.sse import Framer, data_of
from gateway.wire.translation import GrowingWriter, Stamp, StreamWriter, Translated, Translation

__all__ = ["Chained"]


@dataclass(frozen=True, slots=True)
class Chained:
    """`outer` is what the client sees, over chat; `inner` serves chat over what the engine speaks."""

    outer: Translation
    inner: Translation

    def request(self, body: bytes) -> Translated:
        """The body for the engine; what either step loses is lost."""
        first = self.outer.request(body)
        second = self.inner.request(first.body)
        return Translated(second.body, first.lost + second.lost, (first.context, second.context))

    def answer(self, body: bytes, context: object, stamp: Stamp) -> bytes:
        """The whole answer, back through both."""
        outer, inner = _both(context)
        return self.outer.answer(self.inner.answer(body, inner, stamp), outer, stamp)

    def writer(self, context: object, stamp: Stamp) -> StreamWriter:
        """The writer of one streamed answer."""
        outer, inner = _both(context)
        return _Writer(self.outer.writer(outer, stamp), self.inner.writer(inner, stamp))


class _Writer:
    """Writes with `outer` what `inner` has written as chat chunks."""

    __slots__ = ("_framer", "_inner", "_outer")

    def __init__(self, outer: StreamWriter, inner: StreamWriter) -> None:
        self._outer = outer
        self._inner = inner
        self._framer = Framer()

    def feed(self, data: bytes) -> bytes:
        """One event of the engine's."""
        return b"".join(self.feed_pieces(data))

    def end(self) -> bytes:
        """The client's final events."""
        return b"".join(self.end_pieces())

    @property
    def held(self) -> int:
        """What `outer` keeps."""
        return self._outer.held if isinstance(self._outer, GrowingWriter) else 0

    def feed_pieces(self, data: bytes) -> list[bytes]:
        """As `feed`."""
        return self._through(self._inner.feed(data))

    def end_pieces(self) -> list[bytes]:
        """As `end`."""
        written = self._through(self._inner.end())
        outer = self._outer
        return written + (outer.end_pieces() if isinstance(outer, GrowingWriter) else [outer.end()])

    def _through(self, chunks: bytes) -> list[bytes]:
        outer = self._outer
        written: list[bytes] = []
        for data in map(data_of, self._framer.feed(chunks)):
            if data is not None and data.strip() != b"[DONE]":
                written += outer.feed_pieces(data) if isinstance(outer, GrowingWriter) else (outer.feed(data),)
        return written


def _both(context: object) -> tuple[object, object]:
    if isinstance(context, tuple) and len(context) == 2:
        return context
    return None, None
