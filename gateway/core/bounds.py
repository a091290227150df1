"""Names of what bounds a request and a backend: whose limit on the context, and what limits the sequences."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["SENTENCES", "Bound", "LimitedBy"]


class Bound(StrEnum):
    """Whose limit on the context is the narrowest."""

    ENGINE = "engine"
    BACKEND = "backend"
    MODEL = "model"
    KEY = "key"
    CLASS = "class"
    POOL = "pool"


SENTENCES: dict[Bound, str] = {
    Bound.ENGINE: "the widest window of the engines that may serve it",
    Bound.BACKEND: "the widest cap of the backends that may serve it",
    Bound.MODEL: "the cap of this model's name",
    Bound.KEY: "the cap of this key",
    Bound.CLASS: "the cap of this class of requests",
    Bound.POOL: "the largest KV cache of the backends that may serve it",
}
"""What a client is told of the limit that it met."""


class LimitedBy(StrEnum):
    """What bounds the sequences of a backend."""

    SLOTS = "slots"
    """The engine's own limit."""
    TPOT = "tpot"
    """The objective of a route that it serves."""
    RAMP = "ramp"
    """It is just back after failures, and gets more by and by."""
    LEARNED = "learned"
    """It slows down with more."""
