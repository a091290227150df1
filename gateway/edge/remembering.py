"""Keeps what was learned over a restart: read at the start, written every so often and at the end.

A file that can't be read or written costs a warning and what was in it, never the start.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path

from gateway import clock
from gateway.core.experience import Experience
from gateway.core.learned import learned, relearn
from gateway.state.learned_file import Kept, LearnedFile, Unusable, line_of

__all__ = ["Remembering"]

log = logging.getLogger("kvgate.learned")


class Remembering:
    """One experience and its file; `every` in seconds."""

    def __init__(self, path: Path, experience: Experience, every: float) -> None:
        self._file = LearnedFile(path)
        self._experience = experience
        self._every = every
        self._task: asyncio.Task[None] | None = None
        self._written = 0
        self._failing = False

    async def start(self) -> None:
        """Take over what is kept, and keep it up to date from now on."""
        await self._recall()
        self._written = self._experience.lessons
        self._task = asyncio.create_task(self._run(), name="remembering")

    async def stop(self) -> None:
        """Write a last time. A second call does nothing."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await self.save()

    async def save(self) -> None:
        """Write what was learned, if there is anything new."""
        lessons = self._experience.lessons
        if lessons == self._written:
            return
        lines: list[bytes] = []
        for records in learned(self._experience, clock.monotonic()):
            lines += await asyncio.to_thread(lambda some: [line_of(each) for each in some], records)
        try:
            await asyncio.to_thread(self._file.write, lines, clock.wall())
        except OSError as error:
            if not self._failing:
                log.warning("what was learned can't be kept in %s: %s", self._file.path, error.strerror)
            self._failing = True
            return
        self._written, self._failing = lessons, False

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            await self.save()

    async def _recall(self) -> None:
        try:
            kept = await asyncio.to_thread(self._file.read)
            if kept is not None:
                self._take_over(kept)
        except (Unusable, ValueError) as error:
            await self._give_up(str(error))
        except OSError as error:
            log.warning("what was learned before can't be read from %s: %s", self._file.path, error.strerror)

    def _take_over(self, kept: Kept) -> None:
        away = clock.wall() - kept.saved
        relearn(self._experience, kept.records, clock.monotonic(), away)
        log.info("took over %d records of what was learned until %.0f s ago", len(kept.records), max(0.0, away))

    async def _give_up(self, why: str) -> None:
        try:
            aside = await asyncio.to_thread(self._file.set_aside)
        except OSError as error:
            log.warning("%s can't be used (%s) nor moved away: %s", self._file.path, why, error.strerror)
        else:
            log.warning("%s can't be used (%s); it is %s now, and learning starts over", self._file.path, why, aside)
