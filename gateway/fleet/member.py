"""One backend of the fleet: what was declared, what was found, and how it fares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from gateway.config.capacity import Capacity, capacity
from gateway.config.comparing import Told, mismatches
from gateway.config.doubts import doubts
from gateway.config.endpoint import Endpoint
from gateway.config.mismatch import Mismatch
from gateway.config.offers import Detected, serving
from gateway.core.backend import Backend, Offer
from gateway.core.health.breaker import BackendBreaker
from gateway.core.health.states import Probed, health_of
from gateway.core.ledger import Totals
from gateway.core.plan import Plan
from gateway.core.snapshot import BackendView
from gateway.engines.adapter import Engine, Facts, Load
from gateway.engines.registry import engine

__all__ = ["Member"]

FOREIGN_WEIGHT = 0.2
"""Weight of a sample in the estimate of others' traffic (algorithms 2.1)."""
SAMPLE_LIFE = 15.0
"""Seconds after which a sample says nothing any more: silent metrics neither attract nor repel traffic."""
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
    facts: Facts | None = None
    error: str | None = None
    """What the last failed probe said."""
    mismatches: tuple[Mismatch, ...] = ()
    """Figures that the engine told and that file or arithmetic expected, small differences included."""
    doubts: tuple[str, ...] = ()
    """Figures that admission does not rest on, and why."""
    sampled_at: float | None = None
    load: Load | None = None
    foreign_tokens: float = 0.0
    foreign_running: int = 0
    peak_running: int = 0
    """The most of our own requests that ran there since the last sample."""
    peak_reserved: int = 0
    sole_at: float | None = None
    """When a request was sent there that no other backend may serve."""
    died_at: float | None = None
    """When a connection broke of which it is not known that it had worked since the last time."""
    progressed_at: float | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Ids of the models it offers."""
        return tuple(offer.model for offer in self.offers)

    @classmethod
    def declared(cls, backend: Backend, endpoint: Endpoint, plan: Plan) -> Self:
        """A member of which nothing but its declaration is known."""
        traits = engine(endpoint.engine).traits
        served = serving(backend, endpoint, detected=Detected(UNKNOWN_ABILITIES, traits.surfaces | traits.also))
        return cls(
            backend=backend,
            endpoint=endpoint,
            engine=engine(endpoint.engine),
            offers=tuple(one.offer for one in served),
            capacity=capacity(backend, endpoint, served),
            breaker=BackendBreaker(plan.breaker),
        )

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

    @property
    def window(self) -> int:
        """Tokens that one sequence may have there at most."""
        return max((offer.window for offer in self.offers), default=0)

    @property
    def has_own_slots(self) -> bool:
        """Whether every slot has a whole window of KV for itself, so that a free slot is all the room that it takes."""
        room = self.capacity
        return self.backend.keeps_sequences and 0 < room.slots * self.window <= room.pool_tokens

    def sample(self, load: Load, totals: Totals, now: float) -> None:
        """Take in a sample; what it shows beyond the most of ours since the last one belongs to others."""
        ours = max(self.peak_running, totals.running)
        self.foreign_running = max(0, load.running - ours) if load.running is not None else 0
        used = load.kv_tokens
        if load.kv_usage is not None and self.capacity.pool_tokens:
            # A share is in whatever unit the pool is counted in here; an engine's own tokens may be another.
            used = int(load.kv_usage * self.capacity.pool_tokens)
        if used is not None:
            beyond = max(0, used - max(self.peak_reserved, totals.reserved))
            self.foreign_tokens += FOREIGN_WEIGHT * (beyond - self.foreign_tokens)
            most = used
            if load.running is not None:
                # An answer of ours that outgrew its reservation is nobody else's: others hold what they run, no more.
                most = min(most, self.foreign_running * self.window)
            self.foreign_tokens = min(self.foreign_tokens, most)
        self.peak_running, self.peak_reserved = totals.running, totals.reserved
        self.load, self.sampled_at = load, now

    def told(self, now: float) -> Load | None:
        """The last sample, unless it is too old to say anything."""
        if self.sampled_at is None or now - self.sampled_at >= SAMPLE_LIFE:
            return None
        return self.load

    def view(self, now: float, totals: Totals, factors: tuple[float, float]) -> BackendView:
        """What a decision sees of it at `now`; `totals` are our leases there, `factors` the learned ones."""
        told = self.told(now) is not None
        room = self.capacity
        health, retry_at = health_of(self.probed, self.breaker, self.draining, now)
        return BackendView(
            backend=self.backend,
            health=health,
            offers=self.offers,
            slots=max(0, room.slots - (self.foreign_running if told else 0)),
            pool=room.pool_tokens,
            block=room.block,
            charge=room.charge,
            headroom=1.0 if self.has_own_slots else self.backend.headroom,
            running=totals.running,
            reserved=totals.reserved,
            foreign=int(self.foreign_tokens) if told else 0,
            decoding=totals.decoding,
            resident=totals.resident,
            backlog=totals.backlog,
            prefill_pressure=totals.prefill_pressure,
            prefill_factor=factors[0],
            decode_factor=factors[1],
            overcommitted=totals.overcommitted,
            retry_at=retry_at,
        )
