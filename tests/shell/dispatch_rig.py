"""A dispatcher alone: a clock that the test moves, a store that may refuse or dawdle, observers that remember."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gateway.config.catalog import known_model
from gateway.config.endpoint import Endpoint
from gateway.core.backend import Backend
from gateway.core.decision import Decision
from gateway.core.experience import Experience
from gateway.core.footprint import Footprint
from gateway.core.lease import Lease
from gateway.core.ledger import Limits, Refused, Reserved
from gateway.core.plan import Plan, QueueLimits, Route
from gateway.core.prefix.chain import fingerprint
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.dispatcher import Dispatcher
from gateway.engines.adapter import Facts, FoundModel
from gateway.fleet.leases import Leases
from gateway.fleet.roster import Roster
from gateway.state.memory_store import MemoryStore
from tests.core.fleet import DEVICE, NOW

CHAIN = fingerprint([b"hello"])
known_model("m")  # reads the catalogue, which is not for the event loop


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


class FakeStore(MemoryStore):
    """A ledger that refuses the next `refusals` reservations, raises `error`, or waits for `gate` before it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals = 0
        self.error: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.asked = 0
        self.reached = asyncio.Event()

    async def reserve(
        self, lease: str, backend: str, footprint: Footprint, prefill_seconds: float, limits: Limits, now: float
    ) -> Reserved | Refused:
        self.asked += 1
        self.reached.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if self.refusals:
            self.refusals -= 1
            return Refused(Reason.SLOTS_FULL, 0, 1, self.totals(backend, now))
        return await super().reserve(lease, backend, footprint, prefill_seconds, limits, now)


@dataclass
class Observed:
    """Decisions in order; `on_decided` is called with each."""

    decisions: list[Decision] = field(default_factory=list)
    on_decided: Callable[[Decision], None] | None = None
    pumps: int = 0

    def pumped(self, seconds: float, decisions: int) -> None:
        self.pumps += 1

    def decided(self, request: Request, decision: Decision) -> None:
        self.decisions.append(decision)
        if self.on_decided is not None:
            self.on_decided(decision)


def plan_of(*names: str, **more: Any) -> Plan:
    backends = tuple(Backend(name, "vllm", DEVICE) for name in names)
    more.setdefault("queue", QueueLimits(length=10, wait=60.0, aging=15.0))
    return Plan(backends=backends, routes={"m": Route("m", "m")}, **more)


class Rig:
    """Backends `a`, `b` ... of the model `m`, with so many slots each."""

    def __init__(self, *names: str, slots: int = 1, **plan: Any) -> None:
        self.clock = Clock()
        self.store = FakeStore()
        self.seen = Observed()
        self.roster = Roster()
        self.drained: list[str] = []
        self.looked_at: list[str] = []
        self.sample_in: list[tuple[str, float]] = []
        self.slots = slots
        names = names or ("a",)
        made = plan_of(*names, **plan)
        self.leases = Leases(
            made, roster=self.roster, store=self.store, experience=Experience(), now=self.clock, roll=lambda: 0.5
        )
        self.dispatcher = Dispatcher(made, leases=self.leases, observer=self.seen, now=self.clock, roll=lambda: 0.5)
        self.dispatcher.leases.drained = self.drained.append
        self.dispatcher.leases.look_at = self.looked_at.append
        self.dispatcher.leases.sample_in = lambda name, seconds: self.sample_in.append((name, seconds))
        self.declare(self.dispatcher.plan)
        self.discover(*names)

    def declare(self, plan: Plan, slots: int | None = None) -> None:
        """Apply a plan to the roster, each backend with so many slots."""
        self.slots = slots if slots is not None else self.slots
        endpoints = {b.name: Endpoint(b.name, "http://127.0.0.1:9", "vllm", running=self.slots) for b in plan.backends}
        self.roster.apply(plan, endpoints)

    def discover(self, *names: str) -> None:
        for name in names:
            facts = Facts(models=(FoundModel("m", window=32_768),), pool_tokens=100_000, block=16)
            self.roster.discovered(name, facts)

    def submit(self, request: Request) -> asyncio.Task[Lease]:
        return asyncio.create_task(self.dispatcher.submit(request, CHAIN), name=request.id)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and the dispatcher notice."""
        self.clock.now += seconds
        self.dispatcher.fleet_changed()

    @property
    def running(self) -> int:
        return sum(self.dispatcher.leases.totals(member.backend.name).running for member in self.roster)

    @property
    def nothing_left(self) -> bool:
        return not (len(self.store) or self.running or self.dispatcher.waiting() or self.dispatcher._arrivals)


async def turns(count: int = 10) -> None:
    """Let the loop run so often: enough for anything that waits for nothing but its turn."""
    for _ in range(count):
        await asyncio.sleep(0)
