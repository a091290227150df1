"""One backend of the fleet: what was declared, what was found, and how it fares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from gateway.config.capacity import Capacity, capacity
from gateway.config.comparing import Told, mismatches
from gateway.config.doubts import doubts
from gateway.config.endpoint import Endpoint
from gateway.config.mismatch import Mismatch
from gateway.config.offers import Detected, serving
from gateway.core.backend import Backend, Offer
from gateway.core.bounds import LimitedBy
from gateway.core.concurrency import BatchCap, GradientLimit, objectives
from gateway.core.degrading.causes import Cause
from gateway.core.degrading.condition import Condition
from gateway.core.headroom import Range, range_of
from gateway.core.health.breaker import BackendBreaker
from gateway.core.health.device_reading import READING_LIFE, DeviceReading
from gateway.core.health.states import Probed, health_of
from gateway.core.ledger import Totals
from gateway.core.plan import Plan
from gateway.core.snapshot import BackendView, Health
from gateway.engines.adapter import Engine, Facts, Load
from gateway.engines.registry import engine
from gateway.fleet.device_watch import DeviceWatch
from gateway.fleet.observer import Observer

__all__ = ["Member", "tells_nothing"]

SLOTS_UNTOLD = frozenset(("openai", "vllm", "sglang"))
"""Engines of which an operator sets how many requests run at once, to anything, and which do not tell."""
UNIFIED_BUDGET = 0.80
"""Share of a device's memory that engines may use where it is the machine's own memory, too."""
UNKNOWN_ABILITIES = frozenset(("tools", "vision", "audio", "json_schema", "logprobs"))
"""An engine that has not been asked yet is not refused work for what it may well be able to do."""


@dataclass(slots=True)
class Member:
    """One backend. Tokens, and seconds on the monotonic clock."""

    backend: Backend
    endpoint: Endpoint
    engine: Engine
    offers: tuple[Offer, ...]
    capacity: Capacity
    breaker: BackendBreaker
    probed: Probed = Probed.UNKNOWN
    draining: bool = False
    """The file has it no more."""
    cordoned: bool = False
    """An operator keeps it from new requests, until told otherwise or the gateway ends."""
    facts: Facts | None = None
    error: str | None = None
    """What the last failed probe said."""
    mismatches: tuple[Mismatch, ...] = ()
    """Figures that the engine told and that file or arithmetic expected, small differences included."""
    doubts: tuple[str, ...] = ()
    """Figures that admission does not rest on, and why."""
    observer: Observer = field(default_factory=lambda: Observer(Range(1.0)))
    gradient: GradientLimit = field(default_factory=GradientLimit)
    objectives: Mapping[str, float] = field(default_factory=dict)
    """Seconds per output token that routes want, by model."""
    cap: BatchCap = field(default_factory=BatchCap)
    sole_at: float | None = None
    """When a request was sent there that no other backend may serve."""
    died_at: float | None = None
    """When a connection broke of which it is not known that it had worked since the last time."""
    progressed_at: float | None = None
    busy_with: str | None = None
    """The model of the request that was sent there last."""
    condition: Condition = field(default_factory=Condition)
    """What is wrong with it, and how that is known."""
    devices: DeviceWatch | None = None
    """Who asks how its devices fare; None: nobody tells."""
    busy_since: float | None = None
    """When it got the first of the requests that run there; None: none does."""
    awaited_until: float = 0.0
    """When the last of the first tokens should be there that were predicted."""
    health: Health = Health.UNKNOWN
    """As it was seen last."""
    health_since: float | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Ids of the models it offers."""
        return tuple(offer.model for offer in self.offers)

    @classmethod
    def declared(cls, backend: Backend, endpoint: Endpoint, plan: Plan) -> Self:
        """A member of which nothing but its declaration is known."""
        traits = engine(endpoint.engine).traits
        served = serving(backend, endpoint, detected=Detected(UNKNOWN_ABILITIES, traits.surfaces | traits.also))
        member = cls(
            backend=backend,
            endpoint=endpoint,
            engine=engine(endpoint.engine),
            offers=tuple(one.offer for one in served),
            capacity=capacity(backend, endpoint, served),
            breaker=BackendBreaker(plan.breaker),
            objectives=objectives(plan),
        )
        member.settle_bounds()
        return member

    def merge(self) -> None:
        """Declared, found and catalogue facts, read together again."""
        facts = self.facts or Facts()
        surfaces = facts.surfaces if facts.surfaces is not None else self.engine.traits.surfaces
        served = serving(
            self.backend, self.endpoint, facts.models, Detected(facts.abilities, surfaces, facts.pool.dtype)
        )
        if not served and self.offers and not self.endpoint.declared:
            return  # an engine that lists nothing for a moment still is what it was
        self.offers = tuple(one.offer for one in served)
        told = Told(facts.slots, facts.pool_tokens, facts.block, facts.pool)
        self.capacity = capacity(
            self.backend, self.endpoint, served, slots=told.slots, pool_tokens=told.pool_tokens, block=told.block,
            pool=told.pool,
        )  # fmt: skip
        self.mismatches = mismatches(self.backend, self.endpoint, served, told) if self.facts is not None else ()
        pool_source = dict(self.capacity.sources)["pool"]
        self.doubts = tuple(what for what, _ in doubts(self.backend, served, pool_source))
        self.settle_bounds()

    def settle_bounds(self) -> None:
        """Work out again what follows from its capacity, its offers and what routes want of them."""
        self.observer.headroom.within(self._headroom_range())
        wanted = ((offer.speed.decode, self.objectives.get(offer.model)) for offer in self.offers)
        self.cap = BatchCap((decode, tpot) for decode, tpot in wanted if tpot is not None)

    def _headroom_range(self) -> Range:
        if self.has_own_slots:
            return Range(1.0, most=1.0)
        device, room = self.backend.device, self.capacity
        unified = device.memory > 0 and device.budget <= UNIFIED_BUDGET
        return range_of(
            self.backend.headroom, unified=unified, memory=device.memory, weights=room.weights_bytes,
            pool=room.pool_bytes,
        )  # fmt: skip

    @property
    def window(self) -> int:
        """Tokens that one sequence may have there at most."""
        return max((offer.window for offer in self.offers), default=0)

    @property
    def has_own_slots(self) -> bool:
        """Whether every slot has a whole window of KV for itself, so that a free slot is all the room that it takes."""
        room = self.capacity
        return self.backend.keeps_sequences and 0 < room.slots * self.window <= room.pool_tokens

    @property
    def foreign_tokens(self) -> float:
        """KV tokens that others held at the last sample."""
        at = self.observer.sampled_at
        return self.observer.foreign_tokens(at) if at is not None else 0.0

    def sample(self, load: Load, totals: Totals, asked: float, now: float) -> None:
        """Take in a scrape that was asked for at `asked`."""
        self.observer.sample(load, totals, self.capacity.pool_tokens, self.window, asked, now)

    def told(self, now: float) -> Load | None:
        """The last sample, unless it is too old to say anything."""
        return self.observer.told(now)

    def _limit(self, totals: Totals, factor: float, told: Load | None, now: float) -> tuple[int, LimitedBy]:
        """Sequences of ours that may run, and what says so."""
        room, others = self.capacity, self.observer.foreign_running if told is not None else 0
        slots, by = room.slots, LimitedBy.SLOTS
        if self.is_black_box:
            slots, by = self.gradient.limit, LimitedBy.LEARNED
        ramp = self.breaker.ramp(now)
        if ramp < 1.0:
            slots, by = max(1, math.ceil(slots * ramp)), LimitedBy.RAMP
        batch = self.cap.batch(totals.contexts, totals.running - totals.lingering, factor)
        if batch is not None and batch < slots:
            # One of ours always may run: what others do to our objective is no reason to serve nobody.
            return max(min(1, slots - others), batch - others), LimitedBy.TPOT
        return max(0, slots - others), by

    @property
    def is_black_box(self) -> bool:
        """Whether it tells neither how many requests it runs at once nor anything of its load."""
        load = self.observer.load
        if load is None or not tells_nothing(load) or self.backend.engine not in SLOTS_UNTOLD:
            return False
        return dict(self.capacity.sources)["slots"].startswith("usual")

    def reading(self, now: float) -> DeviceReading | None:
        """What its devices told last, unless that is too old to say anything."""
        reading = self.devices.reading if self.devices is not None else None
        return reading if reading is not None and now - reading.at < READING_LIFE else None

    def health_at(self, now: float) -> tuple[Health, float | None]:
        """Its state, and when its next trial is let through."""
        kept = self.draining or self.cordoned
        return health_of(self.probed, self.breaker, kept, now, silent=self.silent_for(now))

    def silent_for(self, now: float) -> float:
        """Seconds since any of our requests there got a token, beyond what was predicted; 0 while none runs."""
        if self.busy_since is None:
            return 0.0
        return max(0.0, now - max(self.busy_since, self.awaited_until, self.progressed_at or 0.0))

    def view(self, now: float, totals: Totals, factors: tuple[float, float]) -> BackendView:
        """What a decision sees of it at `now`; `totals` are our leases there, `factors` the learned ones."""
        room, told = self.capacity, self.told(now)
        slots, limited_by = self._limit(totals, factors[1], told, now)
        health, retry_at = self.health_at(now)
        if health is not self.health or self.health_since is None:
            self.health, self.health_since = health, now
        return BackendView(
            backend=self.backend,
            health=health,
            offers=self.offers,
            slots=slots,
            pool=room.pool_tokens,
            block=room.block,
            charge=room.charge,
            headroom=self.observer.headroom.share,
            running=totals.running,
            reserved=totals.reserved,
            foreign=int(self.observer.foreign_tokens(now)),
            decoding=totals.decoding,
            resident=totals.resident,
            backlog=totals.backlog,
            prefill_pressure=totals.prefill_pressure,
            prefill_factor=factors[0],
            decode_factor=factors[1],
            overcommitted=totals.overcommitted,
            retry_at=retry_at,
            limited_by=limited_by,
            strained=self.condition.verdict.cause is Cause.MEMORY,
            busy_with=self.busy_with if totals.running else None,
            kept=(self.facts.slots if self.facts is not None else None) or room.slots,
        )


def tells_nothing(load: Load) -> bool:
    """Whether a sample says nothing about how busy the engine is."""
    return load.running is None and load.kv_usage is None and load.kv_tokens is None
