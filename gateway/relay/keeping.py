"""What a stream that is written in another dialect keeps of itself, charged and bounded like an answer held whole."""

from __future__ import annotations

from gateway.core.memory import LARGE, Hold
from gateway.errors import AnswerTooLarge, NoRoom, UpstreamError
from gateway.wire.stream_view import GrowingView, StreamView

__all__ = ["Keeping"]


class Keeping:
    """Charges `hold` for what `view` keeps; at most `most` bytes of it (server.limits.answer)."""

    __slots__ = ("_charged", "_hold", "_most", "_view")

    def __init__(self, view: StreamView, hold: Hold, most: int) -> None:
        self._view = view if isinstance(view, GrowingView) else None
        self._hold = hold
        self._most = most
        self._charged = 0

    def grown(self) -> UpstreamError | None:
        """To be asked after each read: what ends the stream, AnswerTooLarge or NoRoom, if it keeps too much."""
        if self._view is None:
            return None
        held = self._view.held
        if held <= self._charged:
            return None
        if held > self._most:
            what = f"what this stream says again at its end is longer than the {self._most} bytes that are held of one"
            return AnswerTooLarge(f"{what} (server.limits.answer); ask for less, or for a chat completion")
        # In steps: a short answer for what it may come to, a large one ahead of it.
        self._charged = min(held + LARGE if held > LARGE else min(2 * held, LARGE), self._most)
        return None if self._hold.keeps(answer=self._charged) else NoRoom()

    def closing(self) -> list[bytes]:
        """The client's last bytes, in pieces; long ones are the same bytes several times. Raises StreamBroken."""
        return self._view.closing_pieces() if self._view is not None else []
