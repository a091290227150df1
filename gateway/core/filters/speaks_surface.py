"""The backend's engine speaks the surface that was called, or one that it can be translated to."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["SpeaksSurface"]


@dataclass(frozen=True, slots=True)
class SpeaksSurface:
    """Where the engine did not tell what it speaks, the attempt finds out."""

    def check(self, candidate: Weighing) -> Reason | None:
        """SURFACE_NOT_OFFERED, or None."""
        offered, wanted = candidate.offer.surfaces, candidate.ask.request.surfaces
        if offered is None or not wanted or not offered.isdisjoint(wanted):
            return None
        return Reason.SURFACE_NOT_OFFERED
