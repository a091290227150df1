"""The engine model on a real clock: one timer, no task."""

from __future__ import annotations

import asyncio

from gateway import clock
from gateway.sim.engine_model import EngineModel, StepResult
from gateway.sim.generation import Choice, Generation

__all__ = ["Driver"]

MAX_LAG_S = 0.25
"""Seconds behind schedule up to which iterations are started in the past, to catch up."""


class Driver:
    """Steps an engine in real time and hands its tokens to the requests they belong to."""

    def __init__(self, engine: EngineModel) -> None:
        """Idle; requests are to be submitted inside a running event loop."""
        self.engine = engine
        self.lateness_s = 0.0
        """The most that an iteration's end was noticed late, seconds; large values mean a busy machine."""
        self._owners: dict[str, tuple[Generation, Choice]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._held: tuple[StepResult, float] | None = None
        self._hung = False

    @property
    def in_flight(self) -> int:
        """Choices that have not ended."""
        return len(self._owners)

    def submit(self, generation: Generation) -> None:
        """Queue all choices of an API request; ValueError as from the engine."""
        now = clock.monotonic()
        for choice in generation.choices:
            self.engine.submit(choice.request, now)
            self._owners[choice.request.id] = (generation, choice)
        if self._timer is None and not self._hung:
            self._start(now)

    def abort(self, generation: Generation) -> None:
        """Drop what is left of an API request, in the engine too; without effect when it has ended."""
        for request_id in generation.unfinished():
            if self._owners.pop(request_id, None) is not None:
                self.engine.abort(request_id)

    def hang(self, hung: bool) -> None:
        """Stop stepping, or go on; the iteration under way stays under way."""
        self._hung = hung
        if not hung and self._timer is None:
            if self._held is not None:
                held, self._held = self._held, None
                self._finish(held[0], clock.monotonic())
            elif self.engine.has_work:
                self._start(clock.monotonic())

    def close(self) -> None:
        """Stop for good."""
        self._hung = True
        self._owners.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self, at: float) -> None:
        result = self.engine.step(at)
        end = at + result.duration_s
        delay = max(0.0, end - clock.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay, self._finish, result, end)

    def _finish(self, result: StepResult, end: float) -> None:
        self._timer = None
        if self._hung:
            self._held = (result, end)
            return
        ended = {finished.id: finished for finished in result.finished}
        for request_id, tokens in result.emitted.items():
            finished = ended.get(request_id)
            owner = self._owners.get(request_id) if finished is None else self._owners.pop(request_id, None)
            if owner is not None:
                owner[0].deliver(owner[1], tokens, finished)
        late = max(0.0, clock.monotonic() - end)
        self.lateness_s = max(self.lateness_s, late)
        if self.engine.has_work:
            self._start(end if late < MAX_LAG_S else end + late)
