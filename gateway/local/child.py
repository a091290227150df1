"""A module as a child process that never outlives its parent: `python -m gateway.local.child MODULE ...`.

The parent holds the other end of the child's standard input and writes nothing: an end of file means that it is gone,
even if it was killed. The child has a session of its own, so Ctrl-C in a terminal reaches the parent alone, which then
takes everything down in order.
"""

from __future__ import annotations

import asyncio
import os
import runpy
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["Child", "main"]

_PATIENCE_S = 0.5
"""Between a first and a second SIGTERM: a gateway that drains stops at the second."""
_STOP_S = 10.0


class Child:
    """Runs `python -m module *arguments` from `async with` to its end; its output is appended to `log`."""

    def __init__(self, module: str, arguments: Sequence[str], log: Path) -> None:
        self._command = (sys.executable, "-m", "gateway.local.child", module, *arguments)
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """Process id; 0 before the start."""
        return self._process.pid if self._process is not None else 0

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def ended(self) -> int:
        """Wait for its end; returns its exit status."""
        return await self._process.wait() if self._process is not None else 0

    def last_lines(self, count: int = 8) -> str:
        """The end of its log, for a message."""
        return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-count:])

    async def __aenter__(self) -> Self:
        with self._log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None:
            return
        for patience in (_PATIENCE_S, _STOP_S):
            with suppress(ProcessLookupError):
                process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), patience)
                return
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def main(arguments: Sequence[str]) -> None:
    """Run the named module with the other arguments, as `python -m` would, until it or the parent ends."""
    # Ignored until the module sets its own handlers: an interpreter that is stopped while it starts shows a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_stdin, daemon=True).start()
    sys.argv = list(arguments)
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


def _exit_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
