"""What the relay asks of whoever watches a stream go by, whatever its surface."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gateway.errors import GatewayError
from gateway.wire.usage import Usage

__all__ = ["EventKind", "GrowingView", "Seen", "StreamView"]


class EventKind(Enum):
    """What one event is."""

    COMMENT = auto()
    ROLE = auto()
    """Says that an answer begins, and nothing of it yet."""
    TOKEN = auto()
    FINISH = auto()
    """Says why an answer ended."""
    USAGE = auto()
    DONE = auto()
    """The terminal event: nothing that matters comes after it."""
    ERROR = auto()
    OTHER = auto()


class Seen(NamedTuple):
    """One event, seen: `forward` are the bytes for the client (empty: keep it back).

    `token` is true when generated text is in it; a FINISH event may carry the last token (vLLM). `error` is flat, as
    `gateway.wire.error_body.error_in` gives it, for an ERROR.
    """

    forward: bytes
    kind: EventKind
    error: dict[str, Any] | None = None
    token: bool = False
    more: tuple[bytes, ...] = ()
    """What comes after `forward`, in pieces that are too long to be joined."""


@runtime_checkable
class GrowingView(Protocol):
    """A view that may keep what it has shown, to show it again."""

    @property
    def held(self) -> int:
        """Bytes that are kept of the answer."""

    def closing_pieces(self) -> list[bytes]:
        """As `StreamView.closing`, not joined."""


class StreamView(Protocol):
    """The state of one stream."""

    @property
    def tokens_seen(self) -> int:
        """Events with generated text so far."""

    @property
    def finish_reason(self) -> str | None:
        """In the words of chat completions: stop, length, tool_calls, content_filter."""

    @property
    def usage(self) -> Usage | None:
        """What the answer cost as far as the engine has told."""

    @property
    def terminal(self) -> bool:
        """The answer is whole: its terminal event came, or a reason to end for every choice."""

    def see(self, event: bytes) -> Seen:
        """Look at one whole event, with its line ends."""

    def unfinished(self, tail: bytes) -> dict[str, Any] | None:
        """The error that the body's end tells although its event is not complete; None when it is only a cut."""

    def closing(self) -> bytes:
        """The client's last bytes once the engine's body has ended well; asked for once. Often none."""

    def failure(self, error: GatewayError) -> bytes | None:
        """The error as events that go on from those that the client has; None where they tell nothing of each other."""
