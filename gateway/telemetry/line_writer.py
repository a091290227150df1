"""Lines to a file or stream from a thread of their own, so that a slow disk or pipe never stops the event loop."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

__all__ = ["LineSink", "LineWriter", "StreamSink"]

T = TypeVar("T")

_BATCH = 256
_GATHER_S = 0.05


class LineSink(Protocol):
    """Where lines end up; called from the writer's thread only."""

    def write(self, data: bytes) -> None:
        """Take whole lines, each with its newline. OSError when they can't be written."""

    def close(self) -> None:
        """Let go of what is held."""


class StreamSink:
    """A binary stream that is not ours to close, such as stderr's buffer."""

    def __init__(self, stream: Callable[[], object]) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        """Write and flush to whatever the stream is now."""
        stream = self._stream()
        buffer = getattr(stream, "buffer", None)
        if buffer is not None:
            buffer.write(data)
            buffer.flush()
        else:
            stream.write(data.decode("utf-8", "replace"))  # type: ignore[attr-defined]
            stream.flush()  # type: ignore[attr-defined]

    def close(self) -> None:
        """Leave the stream open."""


class LineWriter(Generic[T]):
    """A bounded queue of items and a thread that renders and writes them.

    `render(item)` gives one line without its newline; it runs in the thread, so it costs the caller nothing. The thread
    gathers items for `_GATHER_S` before it wakes up, so a busy loop is not interrupted for each. What does not fit the
    queue, or can't be rendered or written, is counted in `dropped` and gone.
    """

    def __init__(
        self, sink: LineSink, render: Callable[[T], bytes], *, capacity: int = 10_000, name: str = "lines"
    ) -> None:
        self._sink = sink
        self._render = render
        self._capacity = capacity
        self._queue: deque[T | threading.Event] = deque()
        self._work = threading.Event()
        self._hurry = threading.Event()
        self._awake = False
        self._closing = False
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name=f"kvgate-{name}", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def put(self, item: T) -> None:
        """Queue one item, never waiting."""
        if self._closing or len(self._queue) >= self._capacity:
            self.dropped += 1
            return
        self._queue.append(item)
        if not self._awake:
            self._awake = True
            self._work.set()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything queued so far is written; False when it took longer than `timeout` seconds."""
        written = threading.Event()
        self._queue.append(written)
        self._hurry.set()
        self._work.set()
        return written.wait(timeout) if not self._closing else not self._queue

    def close(self, timeout: float = 5.0) -> None:
        """Write what is queued, then stop; at most `timeout` seconds. Later items are dropped."""
        if self._closing:
            return
        self._closing = True
        atexit.unregister(self.close)
        self._hurry.set()
        self._work.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._closing:
            self._work.wait()
            self._work.clear()
            self._hurry.wait(_GATHER_S)
            self._hurry.clear()
            self._awake = False
            self._drain()
        self._drain()
        self._sink.close()

    def _drain(self) -> None:
        while self._queue:
            lines: list[bytes] = []
            waiting: list[threading.Event] = []
            while self._queue and len(lines) < _BATCH:
                item = self._queue.popleft()
                if isinstance(item, threading.Event):
                    waiting.append(item)
                    continue
                try:
                    lines.append(self._render(item) + b"\n")
                except Exception:
                    self.dropped += 1
            self._write(lines)
            for event in waiting:
                event.set()

    def _write(self, lines: list[bytes]) -> None:
        if not lines:
            return
        try:
            self._sink.write(b"".join(lines))
        except (OSError, ValueError):
            self.dropped += len(lines)
