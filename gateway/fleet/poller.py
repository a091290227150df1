"""One backend's watcher: learns what the engine is, then samples how it fares, and tells a listener."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Protocol

from gateway import clock
from gateway.config import catalog
from gateway.engines.adapter import Answer, Engine, Facts, Load
from gateway.fleet.background import Background
from gateway.fleet.discovery import discover
from gateway.fleet.probing import ProbeFailed, Prober, Target
from gateway.fleet.restarts import Incarnation

__all__ = ["Listener", "Poller"]

REDISCOVER = 60.0
"""Seconds between looks at facts that seldom change (models, windows, slots, pool)."""
FORGET = 900.0
"""Seconds after which even what stays the same while an engine runs is asked again: a restart can go unnoticed."""
DOWN_INTERVAL = 1.0
"""Seconds between looks at an engine that is down or loading: it should be used again soon after it is back."""
BURST = 0.05
PROBE_TIMEOUT = 5.0

log = logging.getLogger("kvgate.fleet")


class Listener(Protocol):
    """Who wants to know; called on the event loop, must not block."""

    def discovered(self, name: str, facts: Facts) -> None:
        """The engine answered what it is."""

    def sampled(self, name: str, load: Load, asked: float) -> None:
        """The engine answered how it fares, asked at that moment (seconds, monotonic)."""

    def loading(self, name: str) -> None:
        """The engine is there and loads its model."""

    def unreachable(self, name: str, error: str, refused: bool) -> None:
        """The engine did not answer."""

    def restarted(self, name: str) -> None:
        """The engine was started anew between two answers; `discovered` follows."""


class Poller:
    """Watches one backend until stopped. `interval` in seconds between samples, never below the adapter's floor."""

    def __init__(self, target: Target, engine: Engine, prober: Prober, listener: Listener, interval: float) -> None:
        self.target = target
        self.timeout = PROBE_TIMEOUT
        """Seconds that an engine has for one answer."""
        self._engine = engine
        self._prober = prober
        self._listener = listener
        self._interval = max(interval, engine.traits.poll_floor_s)
        self._known_until = 0.0
        self._due = self._sampled_at = 0.0
        self._was: str = "unknown"
        self._kept: dict[str, Answer] = {}
        self._incarnation = Incarnation()
        self._forget_at = 0.0
        self._again = asyncio.Event()
        self._task = Background()

    def start(self) -> None:
        """Begin watching."""
        self._task.start(self._run(), f"poller {self.target.name}")

    def look_now(self) -> None:
        """Ask again soon: a request just failed there. Failures come in bursts; one look answers them all."""
        self._known_until = 0.0
        self._bring_forward(clock.monotonic() + BURST)

    def sample_in(self, seconds: float) -> None:
        """Ask how it fares that soon, but not sooner after the last time than it can bear."""
        soonest = self._sampled_at + self._engine.traits.poll_floor_s
        self._bring_forward(max(clock.monotonic() + seconds, soonest))

    def _bring_forward(self, moment: float) -> None:
        self._due = min(self._due, moment)
        self._again.set()

    def retarget(self, target: Target, interval: float) -> None:
        """Go on with another key or pace."""
        self.target = target
        self._interval = max(interval, self._engine.traits.poll_floor_s)

    async def stop(self) -> None:
        """End watching; returns when nothing of it runs any more."""
        await self._task.stop()

    async def _run(self) -> None:
        while True:
            self._due = math.inf  # what asks for a look during this one gets another
            await self.look()
            pause = self._interval if self._was == "up" else min(DOWN_INTERVAL, self._interval)
            self._bring_forward(clock.monotonic() + pause)
            while (left := self._due - clock.monotonic()) > 0:
                self._again.clear()
                try:
                    async with asyncio.timeout(left):
                        await self._again.wait()
                except TimeoutError:
                    break

    async def look(self) -> None:
        """One round: facts when they are not known or stale, else a load sample."""
        name, engine = self.target.name, self._engine
        try:
            if self._was == "up" and clock.monotonic() < self._known_until:
                asked = clock.monotonic()
                answers = await self._prober.ask(self.target, engine.loading, self.timeout)
                load = engine.load(answers)
                self._sampled_at = clock.monotonic()
                if load.loading:
                    self._changed("loading", "loading its model")
                    self._listener.loading(name)
                    return
                if not self._incarnation.sampled(load):
                    self._listener.sampled(name, load, asked)
                    return
                self._restarted()
            if clock.monotonic() >= self._forget_at:
                self._kept.clear()
                self._forget_at = clock.monotonic() + FORGET
            answers = await discover(self._prober, self.target, engine, self.timeout, self._kept)
            facts = engine.facts(answers)
            if not facts.loading and self._incarnation.discovered(facts) and self._was == "up":
                # What was kept of the former process is in these facts.
                self._restarted()
                facts = engine.facts(await discover(self._prober, self.target, engine, self.timeout, self._kept))
                self._incarnation.discovered(facts)
        except ProbeFailed as error:
            self._changed("down", f"unreachable: {error}")
            self._listener.unreachable(name, str(error), error.refused)
            return
        except Exception:
            # An answer that the adapter can't read must not end the watch.
            log.exception("backend %s: unreadable probe answer", name)
            self._listener.unreachable(name, "unreadable probe answer", False)
            return
        if facts.loading:
            self._changed("loading", "loading its model")
            self._listener.loading(name)
            return
        # The catalogue is a file: the first look at a name reads and parses it, which is not for the event loop.
        await asyncio.to_thread(_look_up, facts)
        self._known_until = clock.monotonic() + REDISCOVER
        self._changed("up", f"serves {', '.join(m.id for m in facts.models) or 'no model'}")
        self._listener.discovered(name, facts)

    def _restarted(self) -> None:
        """Nothing that was read before counts any more."""
        self._changed("restarted", "was started anew")
        self._listener.restarted(self.target.name)

    def _changed(self, state: str, what: str) -> None:
        if state != self._was:
            self._was = state
            if state != "up":
                self._kept.clear()
                self._incarnation.forget()
            (log.info if state == "up" else log.warning)("backend %s: %s", self.target.name, what)


def _look_up(facts: Facts) -> None:
    for model in facts.models:
        for name in (model.id, *model.aliases):
            catalog.known_model(name)
