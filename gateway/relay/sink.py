"""What a connection tells whoever asked for the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gateway.errors import UpstreamError

__all__ = ["Headers", "Sink"]

Headers = Sequence[tuple[str, str]]
"""Header fields in the order they came, names in lower case."""


class Sink(Protocol):
    """Called from inside the transport's read callback, so nothing here may wait.

    Order: `head` once, `data` any number of times, then exactly one of `end` and `broken`; `broken` may come first.
    After the sink has released its connection none of them is called again.
    """

    def head(self, status: int, headers: Headers) -> None:
        """The final status line and its header fields (1xx answers are left out)."""

    def data(self, data: bytes) -> None:
        """The body bytes of one read, with the framing of HTTP taken off."""

    def end(self) -> None:
        """The body is complete by its own framing."""

    def broken(self, error: UpstreamError) -> None:
        """The connection is gone, or what came over it is not HTTP."""
