"""A token bucket: an amount for a time, filled without steps and full at the start.

Kept as what is missing from a full one, so that another rate holds at once: what was spent under the old stays spent.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Rate", "TokenBucket"]

_HAIR = 1e-9
"""Part of a bucket that counts as nothing: what rounding leaves."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So much in so many seconds, both over 0. A bucket holds `amount`, and is filled evenly over `seconds`."""

    amount: float
    seconds: float

    @property
    def refill(self) -> float:
        """What comes back each second."""
        return self.amount / self.seconds

    def wait(self, level: float, needed: float) -> float:
        """Seconds until a bucket at that level holds what is needed; 0 when it does. More than all of it is all."""
        missing = min(needed, self.amount) - level
        return missing / self.refill if missing > _HAIR * self.amount else 0.0


class TokenBucket:
    """What one client has left of one rate; moments in seconds on one clock.

    It may be overdrawn, by a request larger than the bucket or one that took more than was expected: then it has to
    fill up again first.
    """

    __slots__ = ("_at", "_missing", "_rate")

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate
        self._missing = 0.0
        self._at = now

    def level(self, now: float) -> float:
        """What is left, at most the rate's amount; below 0 when it is overdrawn."""
        self._fill(now)
        return self._rate.amount - self._missing

    def take(self, amount: float, now: float) -> None:
        """Spend, or give back a negative amount; over a full bucket runs off."""
        self._fill(now)
        self._missing = max(0.0, self._missing + amount)

    def change(self, rate: Rate, now: float) -> None:
        """Hold to another rate from now on."""
        if rate != self._rate:
            self._fill(now)
            self._rate = rate

    def is_full(self, now: float) -> bool:
        """Say whether nothing is missing, as at the start."""
        self._fill(now)
        return self._missing == 0.0

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._missing = max(0.0, self._missing - (now - self._at) * self._rate.refill)
            self._at = now
