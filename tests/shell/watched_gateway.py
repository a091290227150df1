"""A gateway in a process of its own whose loop is watched: what it holds in memory, and for how long it stood still.

As a program: `python -m tests.shell.watched_gateway FILE` serves until its input ends, and answers each line of it with
one of JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import uvloop

from gateway.config.load import load
from gateway.edge.app import Application
from gateway.telemetry.log import Log

__all__ = ["WatchedGateway", "watched_gateway"]

BEAT_S = 0.002
SAMPLE_S = 0.005
MB = 1_000_000


@dataclass
class WatchedGateway:
    """The gateway as its parent sees it. Memory in bytes: `peak` is its own and that of the processes that it starts,
    together, by a look every few milliseconds."""

    port: int
    process: subprocess.Popen[str]
    start: int = 0
    peak: int = 0
    own: int = 0
    """The peak of the gateway's own process."""
    _seen: bool = field(default=True, repr=False)

    def ask(self) -> dict[str, Any]:
        """The longest stop of its loop in seconds since it was last asked, and `held`: bytes of its budget."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        return told

    @property
    def resident(self) -> int:
        """Bytes that its own process has now."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def watch(self) -> None:
        """Look at its memory until it ends; to be run in a thread."""
        process = psutil.Process(self.process.pid)
        while self.process.poll() is None:
            try:
                own = process.memory_info().rss
                children = sum(_unshared(child) for child in process.children())
            except psutil.Error:
                continue
            self.own = max(self.own, own)
            self.peak = max(self.peak, own + children)
            time.sleep(SAMPLE_S)


def _unshared(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


@contextmanager
def watched_gateway(file: Path) -> Iterator[WatchedGateway]:
    """Serves this file until the block ends."""
    command = [sys.executable, "-m", "tests.shell.watched_gateway", str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            gateway = WatchedGateway(json.loads(process.stdout.readline())["port"], process)
            gateway.start = gateway.resident
            watching = threading.Thread(target=gateway.watch)
            watching.start()
            yield gateway
        finally:
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def _unscheduled() -> float:
    """Seconds for which this thread could have run and had no processor: the machine's other work, and not ours."""
    try:
        with open(f"/proc/self/task/{threading.get_native_id()}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0.0


class _Beat:
    """Notes by how much the loop is late, but for the time in which it had no processor."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def run(self) -> None:
        while True:
            before, lost = time.monotonic(), _unscheduled()
            await asyncio.sleep(BEAT_S)
            late = time.monotonic() - before - BEAT_S
            self.worst = max(self.worst, late - (_unscheduled() - lost))

    def take(self) -> float:
        worst, self.worst = self.worst, 0.0
        return worst


async def _serve(file: Path) -> None:
    app = Application(load(file), lambda: load(file), log=Log(level="error").open())
    await app.start()
    gc.collect()
    gc.freeze()
    beat = _Beat()
    beating = asyncio.create_task(beat.run())
    print(json.dumps({"port": int(app.address.rpartition(":")[2])}), flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        told = {"stall": beat.take(), "held": app.public.memory.held, "running": app.handler.running}
        print(json.dumps(told), flush=True)
    beating.cancel()
    await app.close()


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1])))
