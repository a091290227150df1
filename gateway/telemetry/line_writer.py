"""Lines to a file or stream from a thread of their own, so that a slow disk or pipe never stops the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, Full, Queue
from typing import Generic, Protocol, TypeVar

__all__ = ["LineSink", "LineWriter", "StreamSink"]

T = TypeVar("T")

_BATCH = 256


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

    `render(item)` gives one line without its newline; it runs in the thread too, so rendering costs the caller nothing.
    What does not fit the queue, or can't be rendered or written, is counted in `dropped` and gone.
    """

    def __init__(
        self, sink: LineSink, render: Callable[[T], bytes], *, capacity: int = 10_000, name: str = "lines"
    ) -> None:
        self._sink = sink
        self._render = render
        self._queue: Queue[T | None] = Queue(capacity)
        self._closing = False
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name=f"kvgate-{name}", daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Queue one item, never waiting."""
        try:
            self._queue.put_nowait(item)
        except Full:
            self.dropped += 1

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything queued so far is written; False when it took longer than `timeout` seconds."""
        done = threading.Event()

        def wait() -> None:
            self._queue.join()
            done.set()

        threading.Thread(target=wait, daemon=True).start()
        return done.wait(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Write what is queued, then stop; at most `timeout` seconds. Later items are dropped."""
        if self._closing:
            return
        self._closing = True
        try:
            self._queue.put(None, timeout=timeout)
        except Full:
            return
        self._thread.join(timeout)

    def _run(self) -> None:
        running = True
        while running:
            items = [self._queue.get()]
            while len(items) < _BATCH:
                try:
                    items.append(self._queue.get_nowait())
                except Empty:
                    break
            running = None not in items
            self._write([item for item in items if item is not None])
            for _ in items:
                self._queue.task_done()
        self._sink.close()

    def _write(self, items: list[T]) -> None:
        lines = []
        for item in items:
            try:
                lines.append(self._render(item) + b"\n")
            except Exception:
                self.dropped += 1
        if not lines:
            return
        try:
            self._sink.write(b"".join(lines))
        except (OSError, ValueError):
            self.dropped += len(lines)
