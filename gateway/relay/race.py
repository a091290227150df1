"""Two attempts for one client: the one that first has something to show answers it, the other is let go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from gateway.relay.downstream import Downstream
from gateway.relay.sink import Headers
from gateway.wire.dialect import Dialect

__all__ = ["Race", "Side"]


class Race:
    """Of attempts at `down`. `winner`: the one that has shown something."""

    def __init__(self, down: Downstream) -> None:
        self.down = down
        self.winner: Side | None = None
        self.sides: list[Side] = []

    def side(self) -> Side:
        """The client as one more attempt sees it. What keeps it waiting comes from the first."""
        side = Side(self, first=not self.sides)
        self.sides.append(side)
        return side


class Side:
    """A Downstream that nothing passes through unless its attempt has won, or is the first and none has."""

    __slots__ = ("_begun", "_extra", "_first", "_on_drain", "_race", "dialect", "task")

    def __init__(self, race: Race, *, first: bool) -> None:
        self._race = race
        self._first = first
        self.dialect: Dialect = race.down.dialect
        self._on_drain: Callable[[], None] | None = None
        self._extra: tuple[tuple[str, str], ...] = race.down.extra
        self._begun: tuple[int, Headers, int | None] | None = None
        self.task: asyncio.Task[Any] | None = None
        """Who makes the attempt; cancelled once another one has won."""

    @property
    def lost(self) -> bool:
        """Whether another attempt answers the client."""
        return self._race.winner is not None and self._race.winner is not self

    @property
    def _holds(self) -> bool:
        winner = self._race.winner
        return winner is self or (winner is None and self._first)

    @property
    def on_drain(self) -> Callable[[], None] | None:
        """As the relay of this attempt set it."""
        return self._on_drain

    @on_drain.setter
    def on_drain(self, drained: Callable[[], None] | None) -> None:
        self._on_drain = drained
        if self._holds:
            self._race.down.on_drain = drained

    @property
    def extra(self) -> tuple[tuple[str, str], ...]:
        """Header fields of this attempt."""
        return self._extra

    @extra.setter
    def extra(self, fields: tuple[tuple[str, str], ...]) -> None:
        self._extra = fields
        if self._holds:
            self._race.down.extra = fields

    @property
    def shown(self) -> bool:
        """Whether this attempt answers the client."""
        return self._race.winner is self

    @shown.setter
    def shown(self, shown: bool) -> None:
        """Something of its answer goes out: it has won, unless another one was sooner."""
        if not shown or self._race.winner is not None:
            return
        self._race.winner, down = self, self._race.down
        down.extra, down.on_drain = self._extra, self._on_drain
        if self._begun is not None and not down.started:
            down.start(*self._begun)
        down.shown = True
        for other in self._race.sides:
            if other is not self and other.task is not None:
                other.task.cancel()

    @property
    def started(self) -> bool:
        """Whether the status line is out, as far as this attempt is concerned."""
        return self._race.down.started if self._holds else self._begun is not None

    @property
    def closed(self) -> bool:
        """Whether the client is gone, or answered by another attempt."""
        return self._race.down.closed or self.lost

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        """Send the status line, or keep it until this attempt has won."""
        if self._holds:
            self._race.down.start(status, headers, length)
        else:
            self._begun = (status, headers, length)

    def write(self, data: bytes) -> bool:
        """Send body bytes."""
        return self._race.down.write(data) if self._holds else True

    def end(self, data: bytes = b"") -> None:
        """Finish the body."""
        if self._holds:
            self._race.down.end(data)

    def cut_off(self) -> None:
        """End after an error was told in the stream."""
        if self._holds:
            self._race.down.cut_off()

    def abort(self) -> None:
        """Cut the connection."""
        if self._holds:
            self._race.down.abort()
