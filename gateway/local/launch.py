"""Start, kill and restart a llama.cpp server as a child process; it never outlives its parent."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

from gateway import clock
from gateway.errors import ConfigError, UpstreamError
from gateway.local.models import require_engine
from gateway.local.port import reserve

__all__ = ["LaunchFailed", "LlamaServer"]

_POLL_S = 0.05
_STOP_S = 5.0


class LaunchFailed(UpstreamError):
    """The server ended or stayed unhealthy; the message holds the last lines of its log."""

    code = "launch_failed"


class LlamaServer:
    """One llama.cpp server on a loopback port of its own.

    `context` is in tokens over all slots together: each slot gets `context / slots`. `ready_s` bounds the wait for
    health, in seconds. `flags` are passed on to `gateway.local.llama_server`. The port is reserved from the first start
    to `stop`, so after `kill` connections to it are refused and after `restart` the URL is the same.
    """

    def __init__(
        self,
        model: Path,
        alias: str,
        *,
        context: int = 4096,
        slots: int = 2,
        threads: int = 1,
        port: int = 0,
        flags: Sequence[str] = (),
        log: Path | None = None,
        ready_s: float = 60.0,
    ) -> None:
        self.model = model
        self.alias = alias
        self.context = context
        self.slots = slots
        self.threads = threads
        self.flags = tuple(flags)
        self.ready_s = ready_s
        self._log = log
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._wanted_port = port
        self._reservation: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        """The reserved loopback port; raises ConfigError before `start`."""
        if self._reservation is None:
            raise ConfigError(f"the server {self.alias} has not been started")
        return int(self._reservation.getsockname()[1])

    @property
    def url(self) -> str:
        """Base URL without a trailing slash; the same after every restart."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the running server; raises ConfigError when none runs."""
        if not self.running:
            raise ConfigError(f"the server {self.alias} does not run")
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process exists, healthy or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path | None:
        """The file with the server's output, appended to at every start; one that was not asked for goes at `stop`."""
        return self._log

    async def start(self, *, wait: bool = True) -> None:
        """Start the process and wait for health; with `wait=False` return while the model loads.

        Raises NotInstalled without the engine's wheel, ConfigError without the model file or with the port taken, and
        LaunchFailed when the server is not healthy in time.
        """
        if not self.running:
            await asyncio.to_thread(self._spawn)
        if wait:
            await self.healthy()

    async def healthy(self) -> None:
        """Wait until `/health` answers 200; raises LaunchFailed if the process ends or `ready_s` pass first."""
        deadline = clock.monotonic() + self.ready_s
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2.0)) as session:
            while clock.monotonic() < deadline:
                if not self.running:
                    raise LaunchFailed(f"the server {self.alias} ended at start:\n{await self._last_lines()}")
                try:
                    async with session.get(f"{self.url}/health") as answer:
                        if answer.status == 200:
                            return
                except (aiohttp.ClientError, TimeoutError):
                    pass  # not listening yet
                await asyncio.sleep(_POLL_S)
        lines = await self._last_lines()
        raise LaunchFailed(f"the server {self.alias} was not healthy after {self.ready_s:g} s:\n{lines}")

    async def kill(self) -> None:
        """End the process at once, as a crash would; the port stays reserved and refuses connections."""
        await asyncio.to_thread(self._end, 0.0)

    async def stop(self) -> None:
        """End the process politely, by force after five seconds, and give the port back. May be called twice."""
        await asyncio.to_thread(self._end, _STOP_S)
        if self._reservation is not None:
            self._reservation.close()
            self._reservation = None
        if self._folder is not None:
            await asyncio.to_thread(self._folder.cleanup)
            self._folder, self._log = None, None

    async def restart(self) -> None:
        """Kill if running, then start on the same port; the KV cache is empty afterwards."""
        await self.kill()
        await self.start()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _spawn(self) -> None:
        require_engine()
        if not self.model.is_file():
            raise ConfigError(f"no such model file: {self.model}")
        if self._reservation is None:
            self._reservation = reserve(self._wanted_port)
        if self._log is None:
            self._folder = tempfile.TemporaryDirectory(prefix="kvgate-llama-")
            self._log = Path(self._folder.name) / f"{self.port}.log"
        command = [sys.executable, "-m", "gateway.local.llama_server", "--exit-with-stdin"]
        command += ["-m", str(self.model), "-a", self.alias, "--port", str(self.port)]
        command += ["-c", str(self.context), "-np", str(self.slots), "-t", str(self.threads), *self.flags]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _end(self, patience_s: float) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if patience_s > 0:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience_s)
        process.kill()  # does nothing to a process that has ended
        process.wait()
        if process.stdin is not None:
            process.stdin.close()

    async def _last_lines(self, count: int = 8) -> str:
        if self._log is None:
            return "(no log)"
        text = await asyncio.to_thread(self._log.read_text, "utf-8", "replace")
        return "\n".join(text.splitlines()[-count:])
