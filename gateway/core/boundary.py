"""The data boundary: how sensitive a request is, and what a backend is cleared for."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Label", "within"]


class Label(IntEnum):
    """Data labels and clearances share one total order: public < internal < confidential < restricted."""

    PUBLIC = 0
    INTERNAL = 1
    CONFIDENTIAL = 2
    RESTRICTED = 3

    @classmethod
    def parse(cls, name: str) -> Label:
        """Return the label of this name; ValueError when there is none."""
        try:
            return cls[name.strip().upper()]
        except KeyError:
            known = ", ".join(label.name.lower() for label in cls)
            raise ValueError(f"unknown data label {name!r}; one of {known}") from None


def within(label: Label, clearance: Label) -> bool:
    """Say whether data of this label may reach a backend of this clearance.

    The one function that every path (first pick, retry, fallback) goes through.
    """
    return label <= clearance
