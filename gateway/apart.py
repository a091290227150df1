"""Work on large pieces in a process of its own: the interpreter's lock is not shared with it, nor its memory kept.

A piece goes in by a pipe, what was made of it comes back by another; one process a piece, which costs about 0.2 s.
Work is done one piece after another, so that at most one is unpacked at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Timer
from typing import IO, TypeVar, cast

from gateway.errors import GatewayError, NoRoom
from gateway.wire.members import most_keys

__all__ = ["ALWAYS_LIGHT", "LIGHT_BYTES", "Apart", "is_light", "main", "work_apart"]

ALWAYS_LIGHT = 256 * 1024
"""Pieces up to this size are for a thread whatever is in them: it is at most some 50,000 values."""
LIGHT_BYTES = 4 * 1024 * 1024
"""A longer one is worked on in a process of its own. A decoder holds the interpreter for as long as it decodes, 7 ms
here and 800 ms at 60 MB, and while it does no thread runs, the event loop's neither."""
MOST_VALUES = 50_000
"""Keys, objects and arrays, of each, that a piece for a thread may have; about 1 ms to decode 2,000."""
TIMEOUT_S = 60.0
"""Seconds for one piece; 60 MB take 1 to 5."""
QUEUE_S = 120.0
"""Seconds that a piece may wait for its turn and be worked on."""
_NICER = 5
"""Steps of priority below the gateway: what it does for everybody else comes first."""
_Told = TypeVar("_Told")
_Found = TypeVar("_Found")
_COUNT = 8
"""Bytes that say how long what follows is."""


def is_light(body: bytes) -> bool:
    """Whether a thread may work on this piece: no step of that holds the interpreter for more than some 50 ms."""
    if len(body) <= ALWAYS_LIGHT:
        return True
    if len(body) > LIGHT_BYTES:
        return False
    # Few marks are few values; single bytes are counted in a third of a millisecond a MB. Only where there are many, it
    # is looked at which of them stand in strings: JSON quoted in JSON, with a backslash after a bracket.
    if body.count(b":") > MOST_VALUES and most_keys(body) > MOST_VALUES:
        return False
    return all(
        (many := body.count(mark)) <= MOST_VALUES or many - body.count(mark + b"\\") <= MOST_VALUES
        for mark in (b"{", b"[")
    )


class Apart:
    """The queue of large pieces. One a gateway."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="apart")

    async def call(
        self, function: Callable[[_Told, bytes], tuple[_Found, bytes]], told: _Told, piece: bytes, *, inline: int
    ) -> tuple[_Found, bytes]:
        """Call a function of a module: on the loop up to `inline` bytes, in a thread if the piece is light, or apart.

        Raises what the function raises, and NoRoom as `work` does.
        """
        if len(piece) <= inline:
            return function(told, piece)
        light = await asyncio.to_thread(_if_light, function, told, piece)
        if light is not None:
            return light
        found, made = await self.work(f"{function.__module__}:{function.__name__}", told, (piece,))
        return cast(_Found, found), made

    async def work(self, name: str, told: object, pieces: Sequence[bytes | memoryview]) -> tuple[object, bytes]:
        """Call `name` ("module:function") there with `told` and the pieces as one; what it returns.

        Raises the GatewayError that it raises, and NoRoom where it does not come to an end. Cancelled, it ends that
        process.
        """
        running = _Running()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(QUEUE_S):
                found, made = await loop.run_in_executor(self._pool, work_apart, name, told, pieces, running)
        except TimeoutError:
            running.stop()
            raise NoRoom("too many large requests and answers wait to be worked on") from None
        except asyncio.CancelledError:
            running.stop()
            raise
        if isinstance(found, GatewayError):
            raise found
        return found, made

    def close(self) -> None:
        """Let the thread go; nothing new is begun afterwards."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _if_light(
    function: Callable[[_Told, bytes], tuple[_Found, bytes]], told: _Told, piece: bytes
) -> tuple[_Found, bytes] | None:
    return function(told, piece) if is_light(piece) else None


class _Running:
    """The process of one piece, which nobody may want any more before it begins."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True
        if self.process is not None:
            self.process.kill()


def work_apart(
    name: str, told: object, pieces: Sequence[bytes | memoryview], running: _Running | None = None
) -> tuple[object, bytes]:
    """Return what `name` returns in a fresh process, or the GatewayError that it raises there with no bytes.

    Blocks its thread, without holding the interpreter. NoRoom when the process did not come to an end.
    """
    running = running or _Running()
    command = [sys.executable, "-P", "-c", "from gateway.apart import main; main()", name]
    # No secrets in its surroundings, and signals of a terminal are not for it.
    env = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, start_new_session=True
    ) as process:
        running.process = process
        if running.stopped:
            process.kill()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = Timer(TIMEOUT_S, process.kill)
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                _put(pipe, pickle.dumps(told))  # not an argument, which everybody on the machine can read
                pipe.write(sum(map(len, pieces)).to_bytes(_COUNT))
                for piece in pieces:
                    pipe.write(piece)
            answer, made = _take(process.stdout), _take(process.stdout)
        finally:
            timer.cancel()
    if process.returncode != 0 or not answer:
        return NoRoom("a large request or answer could not be worked on"), b""
    return pickle.loads(answer), made


def main() -> None:
    """Run as that process: work from standard input, the result to standard output."""
    os.nice(_NICER)
    module, _, function = sys.argv[1].partition(":")
    pipe = sys.stdin.buffer
    told = pickle.loads(_take(pipe))
    found: object
    try:
        found, made = getattr(import_module(module), function)(told, _take(pipe))
    except GatewayError as error:
        error.__cause__ = error.__context__ = None
        found, made = error, b""
    _put(sys.stdout.buffer, pickle.dumps(found))
    _put(sys.stdout.buffer, made)


def _put(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(_COUNT))
    pipe.write(data)


def _take(pipe: IO[bytes]) -> bytes:
    """Read in one piece, which is not copied once more."""
    size = pipe.read(_COUNT)
    return pipe.read(int.from_bytes(size)) if len(size) == _COUNT else b""
