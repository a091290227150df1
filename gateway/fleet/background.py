"""A task that goes on until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

__all__ = ["Background"]


class Background:
    """At most one at a time."""

    __slots__ = ("_task",)

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Begin; `name` is what debuggers show."""
        self._task = asyncio.create_task(work, name=name)

    async def stop(self) -> None:
        """End; returns when nothing of it runs any more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
