"""What one client may use: requests at once, and amounts for a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from gateway.core.fair_share import cost_of
from gateway.core.request import Request
from gateway.core.token_bucket import Rate

__all__ = ["Amounts", "ClientLimits", "Levels", "Quota", "Shortfall", "needs_of", "shortfall", "whole_left"]


class Quota(StrEnum):
    """What is counted against a client; the names are those of the file."""

    RUNNING = "running"
    REQUESTS = "requests"
    TOKENS = "tokens"
    """Of prompts, cached ones too, and of answers."""
    KV_SECONDS = "kv_seconds"
    """Tokens of KV cache reserved for its requests, times the seconds for which they are."""


Amounts = Mapping[Quota, float]
"""So much of each."""


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits of one client: `running` requests at once (None: any), and rates."""

    running: int | None = None
    rates: Mapping[Quota, Rate] = field(default_factory=dict)


class Levels(NamedTuple):
    """Where a client stands: requests running, and what is left of each of its rates."""

    running: int
    left: Amounts


class Shortfall(NamedTuple):
    """The limit that holds a request back: what is left of `amount`, and what is needed.

    `seconds` until there is as much as is needed; None where that hangs on requests that end.
    """

    quota: Quota
    left: float
    needed: float
    amount: float
    per: float | None = None
    """Seconds for which the amount is given; None: at once."""
    seconds: float | None = None


def needs_of(request: Request) -> Amounts:
    """What must be left for a request to start.

    Of KV cache only something: how much a request takes hangs on where it will run.
    """
    return {Quota.REQUESTS: 1.0, Quota.TOKENS: float(cost_of(request)), Quota.KV_SECONDS: 1.0}


def shortfall(limits: ClientLimits, levels: Levels, needs: Amounts) -> Shortfall | None:
    """The limit that a client must wait for longest before something with these needs may start; None: it may now."""
    if limits.running is not None and levels.running >= limits.running:
        return Shortfall(Quota.RUNNING, limits.running - levels.running, 1.0, limits.running)
    longest, found = 0.0, None
    for quota, rate in limits.rates.items():
        left, needed = levels.left.get(quota, rate.amount), needs.get(quota, 0.0)
        seconds = rate.wait(left, needed)
        if seconds > longest:
            longest, found = seconds, Shortfall(quota, left, needed, rate.amount, rate.seconds, seconds)
    return found


def whole_left(left: float) -> int:
    """What is left, as a client is told: whole, and never below 0."""
    return max(0, math.floor(left + 1e-6))
