"""The client's side of a relay, as the relay sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gateway.relay.sink import Headers
from gateway.wire.dialect import Dialect

__all__ = ["Downstream"]


class Downstream(Protocol):
    """Implemented by the edge over the client's transport; nothing here waits.

    `on_drain` is set by the relay and called when the client's buffer has fallen below its low-water mark. `started`:
    the status line is out. `closed`: the client is gone and writing is pointless (but harmless).
    """

    on_drain: Callable[[], None] | None
    extra: tuple[tuple[str, str], ...]
    """Header fields that are added to the head, whoever starts the answer."""
    dialect: Dialect
    """How this client is told of errors and kept waiting."""
    shown: bool
    """Some of an answer was sent, and not just the status line and keepalives: nothing may be tried again."""

    @property
    def started(self) -> bool:
        """Whether the status line is out."""

    @property
    def closed(self) -> bool:
        """Whether the client is gone."""

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        """Send the status line; `length` in bytes where the body's is known, else the body is chunked."""

    def write(self, data: bytes) -> bool:
        """Send body bytes in one write; False: over the high-water mark, so read no more until `on_drain`."""

    def end(self, data: bytes = b"") -> None:
        """Finish the body properly (the last chunk), its last bytes in the same write."""

    def cut_off(self) -> None:
        """End after an error was told in the stream: as `abort`, or properly where the dialect wants it so."""

    def abort(self) -> None:
        """End the connection without finishing the body, so that the client's parser sees a cut.

        Bytes under the high-water mark still go out first (the error event is among them); over it, they are dropped:
        that client is not reading.
        """
