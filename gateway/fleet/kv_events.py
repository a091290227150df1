"""Listens to what an engine says of its KV cache, over ZMQ (the extra `kvgate[kv-events]`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from gateway.core.prefix.block_events import Event
from gateway.engines.kv_event_batch import events_of, sequence_of
from gateway.errors import ConfigError
from gateway.fleet.background import Background

__all__ = ["KvEvents", "require_zmq"]

log = logging.getLogger("kvgate.fleet")

_REPLAY_S = 2.0
"""Seconds that an engine may take to say earlier messages again."""


def require_zmq() -> Any:
    """The library. Raises ConfigError with the line that installs it."""
    try:
        import zmq.asyncio
    except ImportError:
        raise ConfigError("kv_events need pyzmq: pip install 'kvgate[kv-events]'") from None
    return zmq


class KvEvents:
    """One subscription. `took(events)` is called for each batch, in order; `lost()` when some can't be had any more.

    `listen`: an address to bind, for engines that connect; else `connect` to one that binds. `replay`: where an engine
    says its last messages again; asked when a number is missing.
    """

    def __init__(
        self,
        name: str,
        *,
        connect: str | None,
        listen: str | None,
        replay: str | None,
        took: Callable[[list[Event]], None],
        lost: Callable[[], None],
    ) -> None:
        self._name = name
        self._connect, self._listen, self._replay = connect, listen, replay
        self._took, self._lost = took, lost
        self._next: int | None = None
        self._task = Background()

    def start(self) -> None:
        """Begin to listen. Raises ConfigError where the library is missing."""
        require_zmq()
        self._task.start(self._run(), f"kv events of {self._name}")

    async def stop(self) -> None:
        """Stop listening."""
        await self._task.stop()

    async def _run(self) -> None:
        zmq = require_zmq()
        context = zmq.asyncio.Context()
        socket = context.socket(zmq.SUB)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        try:
            if self._listen is not None:
                socket.bind(self._listen)
            else:
                socket.connect(self._connect)
            while True:
                await self._take(zmq, context, await socket.recv_multipart())
        except zmq.ZMQError as error:
            log.warning("backend %s: its KV events can't be listened to: %s", self._name, error)
        finally:
            context.destroy(linger=0)

    async def _take(self, zmq: Any, context: Any, frames: list[bytes]) -> None:
        try:
            number = sequence_of(frames[-2])
            events = events_of(frames[-1])
        except (ValueError, IndexError) as error:
            log.warning("backend %s: an unreadable KV event was left out: %s", self._name, error)
            self._lost()
            return
        expected = 0 if self._next is None else self._next
        if number < expected:  # it counts from 0 again: another process
            self._lost()
            self._next = expected = 0
        if number > expected and not await self._again(zmq, context, expected, number):
            if self._next is not None:
                log.info("backend %s: KV events %d to %d were lost", self._name, expected, number - 1)
            self._lost()
        self._next = number + 1
        self._took(events)

    async def _again(self, zmq: Any, context: Any, first: int, until: int) -> bool:
        """Ask for the messages from `first` on, up to and without `until`; whether all of them came."""
        if self._replay is None:
            return False
        socket = context.socket(zmq.DEALER)
        expected = first
        try:
            socket.connect(self._replay)
            await socket.send_multipart([b"", first.to_bytes(8, "big")])
            async with asyncio.timeout(_REPLAY_S):
                while expected < until:
                    frames = await socket.recv_multipart()
                    number = sequence_of(frames[-2])
                    if number < 0 or number > expected:
                        return False
                    if number == expected:
                        self._took(events_of(frames[-1]))
                        expected += 1
        except (TimeoutError, ValueError, IndexError, zmq.ZMQError):
            return False
        finally:
            socket.close(linger=0)
        return True
