"""Two translations in a row: the client's dialect to chat completions, and those to the engine's."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.wire.sse import Framer, data_of
from gateway.wire.translation import Stamp, StreamWriter, Translated, Translation

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
        return self._through(self._inner.feed(data))

    def end(self) -> bytes:
        """The client's final events."""
        return self._through(self._inner.end()) + self._outer.end()

    def _through(self, chunks: bytes) -> bytes:
        found = (data_of(event) for event in self._framer.feed(chunks))
        return b"".join(self._outer.feed(data) for data in found if data is not None and data.strip() != b"[DONE]")


def _both(context: object) -> tuple[object, object]:
    if isinstance(context, tuple) and len(context) == 2:
        return context
    return None, None
