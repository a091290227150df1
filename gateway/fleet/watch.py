"""Watches every backend of the roster: one poller each, started, stopped and restarted as the plan changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from gateway import clock
from gateway.config.backends import KvEventsSpec
from gateway.core.degrading.causes import FINE, SENTENCES
from gateway.core.ledger import Totals
from gateway.core.prefix.block_events import Event, Lost
from gateway.engines.adapter import Facts, Load
from gateway.errors import ConfigError
from gateway.fleet.canary import PATIENCE, Canary
from gateway.fleet.device_watch import DeviceWatch
from gateway.fleet.kv_events import KvEvents
from gateway.fleet.member import Member
from gateway.fleet.poller import Poller
from gateway.fleet.probing import Prober, Target
from gateway.fleet.roster import Roster

__all__ = ["Watch"]

log = logging.getLogger("kvgate.fleet")


class Watch:
    """Lets pollers write into the roster. `changed` is called after each write that a decision may see.

    `restarted(name)` tells that an engine came back and its KV cache is empty, `observed(name, running, asked)`
    how many requests an engine says it has, running or waiting, and when it was asked.
    """

    def __init__(
        self,
        roster: Roster,
        *,
        totals: Callable[[str], Totals],
        changed: Callable[[], None],
        restarted: Callable[[str], None],
        observed: Callable[[str, int, float], None],
        blocks: Callable[[str, list[Event]], None] = lambda _name, _events: None,
        interval: float = 5.0,
        canary: bool = False,
    ) -> None:
        self.interval = interval
        self.canary = canary
        """Whether those that rest after failures are asked a question of one token."""
        self._roster = roster
        self._totals = totals
        self._changed = changed
        self._restarted = restarted
        self._observed = observed
        self._prober = Prober()
        self._canary = Canary(self._prober, self._answered)
        self._blocks = blocks
        self._pollers: dict[str, Poller] = {}
        self._listening: dict[str, tuple[KvEventsSpec, KvEvents]] = {}
        self._devices: dict[str, DeviceWatch] = {}
        self._said: dict[str, set[str]] = {}

    async def apply(self, fresh: tuple[str, ...]) -> None:
        """Watch the roster's members that do not drain; those in `fresh` from the start."""
        wanted = {member.backend.name: member for member in self._roster if not member.draining}
        gone = [name for name in self._pollers if name not in wanted or name in fresh]
        await asyncio.gather(*(self._pollers.pop(name).stop() for name in gone))
        await self._listen({name: member.endpoint.kv_events for name, member in wanted.items()})
        await self._ask_devices(wanted)
        for name, member in wanted.items():
            if name not in self._pollers:
                poller = Poller(_target(member), member.engine, self._prober, self, self.interval)
                self._pollers[name] = poller
                poller.start()
            else:
                self._pollers[name].retarget(_target(member), self.interval)

    async def _ask_devices(self, wanted: dict[str, Member]) -> None:
        """Ask the exporters of those that have some, and no others."""
        for name, watch in list(self._devices.items()):
            if name not in wanted or wanted[name].endpoint.telemetry != watch.spec:
                await self._devices.pop(name).stop()
        for name, member in wanted.items():
            spec = member.endpoint.telemetry
            if spec is not None and name not in self._devices:
                self._devices[name] = watch = DeviceWatch(name, spec, self._prober)
                watch.start()
            member.devices = self._devices.get(name)

    async def _listen(self, wanted: dict[str, KvEventsSpec | None]) -> None:
        """Listen to the engines that tell of their KV caches, and to no others."""
        for name, (spec, listener) in list(self._listening.items()):
            if wanted.get(name) != spec:
                del self._listening[name]
                await listener.stop()
        for name, told in wanted.items():
            if told is not None and name not in self._listening:
                listener = KvEvents(
                    name,
                    connect=told.connect,
                    listen=told.listen,
                    replay=told.replay,
                    took=partial(self._blocks, name),
                    lost=partial(self._blocks, name, [Lost()]),
                )
                self._listening[name] = told, listener
                try:
                    listener.start()
                except ConfigError as error:
                    log.warning("backend %s: %s", name, error.message)

    def look_now(self, name: str) -> None:
        """A request just failed there: ask at once."""
        poller = self._pollers.get(name)
        if poller is not None:
            poller.look_now()

    def sample_in(self, name: str, seconds: float) -> None:
        """A request was abandoned there: ask soon whether the engine has let it go."""
        poller = self._pollers.get(name)
        if poller is not None:
            poller.sample_in(seconds)

    async def stop(self) -> None:
        """Stop all pollers and close the probing session."""
        await self._listen({})
        await self._ask_devices({})
        await asyncio.gather(*(poller.stop() for poller in self._pollers.values()))
        await self._canary.stop()
        self._pollers.clear()
        await self._prober.close()

    # --- what pollers tell

    def discovered(self, name: str, facts: Facts) -> None:
        """The engine answered what it is."""
        if self._roster.get(name) is not None:
            restarted = self._roster.discovered(name, facts, clock.monotonic())
            self._roster.reached(name, clock.monotonic(), restarted=restarted)
            if restarted:
                self._restarted(name)
            self._say(name)
            self._ask(name)
            self._changed()

    def _say(self, name: str) -> None:
        """Log what is odd about a backend's capacity, each oddity once for as long as it stays the same."""
        member = self._roster[name]
        wrong, doubted = {str(one) for one in member.mismatches if one.is_large}, set(member.doubts)
        for sentence in sorted((wrong | doubted) - self._said.get(name, set())):
            (log.warning if sentence in wrong else log.info)("backend %s: %s", name, sentence)
        self._said[name] = wrong | doubted

    def sampled(self, name: str, load: Load, asked: float) -> None:
        """The engine answered how it fares, asked at that moment."""
        if self._roster.get(name) is not None:
            now = clock.monotonic()
            self._roster.sampled(name, load, self._totals(name), now, asked)
            self._roster.reached(name, now)
            self._judge(name)
            if load.running is not None:
                self._observed(name, load.running + (load.waiting or 0), asked)
                if self._totals(name).lingering:
                    self.sample_in(name, 0.0)
            self._ask(name)
            self._changed()

    def _ask(self, name: str) -> None:
        """Where probes are answered and requests were not, a question tells more."""
        if self.canary and self._roster.is_suspect(name):
            member = self._roster[name]
            if self._canary.ask(member, _target(member)):
                self._roster.asks(name, clock.monotonic() + PATIENCE)

    def _answered(self, name: str, answered: bool | None) -> None:
        self._roster.asked(name, answered, clock.monotonic())
        self._changed()

    def loading(self, name: str) -> None:
        """The engine is there and loads its model."""
        if self._roster.get(name) is not None:
            self._roster.loading(name)
            self._judge(name)
            self._changed()

    def restarted(self, name: str) -> None:
        """The engine was started anew between two answers; `discovered` follows."""
        if self._roster.get(name) is not None:
            self._roster.restarted(name)

    def unreachable(self, name: str, error: str, refused: bool) -> None:
        """The engine did not answer."""
        if self._roster.get(name) is not None:
            if self._roster.unreachable(name, error, refused, clock.monotonic()):
                self._changed()
            self._judge(name)

    def _judge(self, name: str) -> None:
        """Name the cause of what is wrong there, and log it once when it begins and when it ends."""
        condition = self._roster[name].condition
        before = condition.verdict.cause
        verdict = self._roster.judge(name, self._totals(name), clock.monotonic())
        if verdict.cause is before:
            return
        if verdict.cause in FINE:
            if before not in FINE:
                log.info("backend %s: well again (%s)", name, before)
        else:
            log.warning("backend %s: %s: %s", name, SENTENCES[verdict.cause], "; ".join(verdict.evidence))


def _target(member: Member) -> Target:
    endpoint = member.endpoint
    key = endpoint.key.reveal() if endpoint.key is not None else None
    return Target(endpoint.name, endpoint.url, member.engine.credential(key) if key else None)
