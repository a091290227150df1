"""How far a figure of a catalogue can be trusted."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Confidence"]


class Confidence(StrEnum):
    """What stands behind an entry of a catalogue."""

    HIGH = "high"
    """Read from a published configuration, or confirmed by an engine's own figures."""
    MEDIUM = "medium"
    """Commonly published, not checked against the source."""
    LOW = "low"
    """Derived from relatives."""
    UNVERIFIED = "unverified"
    """Somebody's claim."""

    @property
    def is_low(self) -> bool:
        """Whether admission must not rest on it without saying so."""
        return self in (Confidence.LOW, Confidence.UNVERIFIED)
