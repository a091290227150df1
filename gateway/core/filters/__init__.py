"""What takes a backend out of one decision, one file a rule; each rule notes the limit it applied and what was needed.

Three stages, in order: can this backend ever serve the request, does it work, has it room now.
"""

from __future__ import annotations

from typing import Protocol

from gateway.core.filters.awaited_prefix import AwaitedPrefix
from gateway.core.filters.class_ceiling import ClassCeiling
from gateway.core.filters.fits_context import FitsContext
from gateway.core.filters.fits_pool import FitsPool
from gateway.core.filters.has_abilities import HasAbilities
from gateway.core.filters.healthy import Healthy
from gateway.core.filters.keeps_answer import KeepsAnswer
from gateway.core.filters.keeps_pace import KeepsPace
from gateway.core.filters.kv_headroom import KvHeadroom
from gateway.core.filters.not_tried import NotTried
from gateway.core.filters.one_model import OneModel
from gateway.core.filters.open_backlog import OpenBacklog
from gateway.core.filters.scarce_kv import ScarceKv
from gateway.core.filters.serves_model import ServesModel
from gateway.core.filters.speaks_surface import SpeaksSurface
from gateway.core.filters.within_boundary import WithinBoundary
from gateway.core.filters.within_limit import WithinLimit
from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["ABLE", "ROOM", "WORKING", "Filter"]


class Filter(Protocol):
    """One rule."""

    def check(self, candidate: Weighing) -> Reason | None:
        """The reason why this candidate falls out, with its limit and what was needed noted, or None."""
        ...


ABLE: tuple[Filter, ...] = (
    WithinBoundary(),
    ServesModel(),
    SpeaksSurface(),
    KeepsAnswer(),
    HasAbilities(),
    FitsContext(),
    FitsPool(),
)
"""Permanent: waiting changes nothing. The boundary comes first."""
WORKING: tuple[Filter, ...] = (NotTried(), Healthy())
"""The backend could serve it, but not now and not soon."""
ROOM: tuple[Filter, ...] = (
    OneModel(),
    WithinLimit(),
    KvHeadroom(),
    ClassCeiling(),
    ScarceKv(),
    OpenBacklog(),
    KeepsPace(),
    AwaitedPrefix(),
)
"""Transient: running requests end, and there is room. What closes a backend to everybody comes first."""
