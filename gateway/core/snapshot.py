"""The fleet at one moment, as values: what a decision looks at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from gateway.core.backend import Backend, Offer
from gateway.core.bounds import LimitedBy
from gateway.core.kv.charge import NO_CHARGE, Charge

__all__ = ["BackendView", "Health", "Snapshot"]


class Health(StrEnum):
    """States of a backend as admission sees them."""

    UP = "up"
    TRIAL = "trial"
    """Back from a failure: a few requests only, until one succeeds."""
    LOADING = "loading"
    OPEN = "open"
    """The breaker is open: it failed repeatedly and rests."""
    RESTING = "resting"
    """It works, and asked to be sent nothing for a while, being full."""
    DOWN = "down"
    DRAINING = "draining"
    UNKNOWN = "unknown"
    """Not probed yet."""


@dataclass(slots=True)
class BackendView:
    """One backend now.

    Tokens and seconds throughout; the ledger's own totals, corrected by the engine's last report.

    Never changed once made. Not frozen all the same: a snapshot makes one for each backend, and freezing would make
    that three times as slow; a named tuple is slower to read, and decisions read these most.
    """

    backend: Backend
    health: Health
    offers: tuple[Offer, ...]
    slots: int
    """Requests that may run at once (choices count one each): the least of all bounds."""
    pool: int
    """KV pool in tokens; 0 when it is not known (then slots alone bound it)."""
    block: int = 1
    """Tokens a KV block."""
    charge: Charge = NO_CHARGE
    """What the pool is charged for each sequence beside its tokens."""
    headroom: float = 0.92
    """Share of the pool that admission may fill."""
    running: int = 0
    reserved: int = 0
    """Tokens reserved by our own leases."""
    foreign: int = 0
    """Tokens held by traffic that is not ours, from the engine's report."""
    decoding: int = 0
    """Sequences past their first token."""
    resident: int = 0
    """Tokens read by each decode step: the contexts of the decoding sequences."""
    backlog: float = 0.0
    """Seconds of prefill sent and not at its first token."""
    prefill_pressure: float = 0.0
    """Decayed sum of prefill seconds sent (time constant 20 s), as of the snapshot's now."""
    prefill_factor: float = 1.0
    decode_factor: float = 1.0
    """Learned: observed over predicted seconds."""
    overcommitted: bool = False
    """A running request outgrew its reservation and could not extend: nothing new until there is room."""
    busy_with: str | None = None
    """The model that our requests there ask for."""
    retry_at: float | None = None
    """When the breaker lets a trial through."""
    limited_by: LimitedBy = LimitedBy.SLOTS
    strained: bool = False
    """Whether it preempts, or ran out of memory lately."""
    """Where `slots` comes from."""
    awaited: int = 0
    awaited_kv: int = 0
    awaited_prefill: float = 0.0
    """Sequences, tokens of KV and seconds of prefill of requests that chose to wait for it, and come first."""
    kept: int = 0
    """Slots of the engine, each of which keeps a sequence in its cache; 0: as many as `slots`."""

    @property
    def name(self) -> str:
        """The backend's name."""
        return self.backend.name

    @property
    def free(self) -> int:
        """Tokens of KV that admission may still give out (may be negative)."""
        return int(self.pool * self.headroom) - self.foreign - self.reserved

    def offer(self, model: str) -> Offer | None:
        """The offer of that model, or None when it isn't served here."""
        for offer in self.offers:
            if offer.model == model or offer.answers_to(model):
                return offer
        return None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fleet at `now` (seconds, monotonic)."""

    now: float
    views: tuple[BackendView, ...]
    version: int = 0

    def view(self, name: str) -> BackendView | None:
        """The view of that backend, or None when it is gone."""
        for view in self.views:
            if view.backend.name == name:
                return view
        return None

    def with_view(self, view: BackendView) -> Snapshot:
        """A copy with one backend's view replaced."""
        name = view.backend.name
        return replace(self, views=tuple(view if v.backend.name == name else v for v in self.views))
