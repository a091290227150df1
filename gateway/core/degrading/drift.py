"""Whether a backend became slower than it was: a cumulative sum of log residuals in one phase.

Residuals are observed over predicted seconds, so what a request asked for and who ran beside it is taken out. They are
compared with the backend's own past, not with the catalogue: a card that was always slow has not degraded.
"""

from __future__ import annotations

import math

__all__ = ["ACTED_ON", "Drift"]

ACTED_ON = 1.4
"""Slowdown below which an alarm is not acted upon."""
_SLACK = 0.5
_ALARM = 8.0
"""In spreads: about 19,000 samples between false alarms, 16 until a shift by one spread is found (Siegmund)."""
_CLIP = 3.0
"""Spreads that one sample counts for at most: four in a row are needed, however slow."""
_LEANING, _LEANS_BY = 2.0, 1.25
"""Of the sum, and of the slowdown, from which on a phase is no longer taken for well."""
_LEAST_SPREAD = 0.08
_FIRST = 24
"""Samples from which the usual is known."""
_USUAL_S = 3600.0
"""Time constant of what is usual."""
_RATE = 0.2
"""Weight of a sample in the level."""
_ABSORBED_S = 3600.0
"""After so long a changed speed is the usual one."""


class Drift:
    """One phase of one backend. Seconds on one monotonic clock; logs are natural."""

    __slots__ = ("_alarmed", "_mean", "_samples", "_sum", "_updated", "_variance", "level", "since")

    def __init__(self) -> None:
        self.level = 0.0
        """ln of how much slower than usual the last samples were, lately most."""
        self.since: float | None = None
        """When the slowdown that is alarmed began; None: there is none."""
        self._alarmed = False
        self._mean = 0.0
        self._variance = 0.0
        self._samples = 0
        self._sum = 0.0
        self._updated = 0.0

    @property
    def known(self) -> bool:
        """Whether enough was seen to say what is usual."""
        return self._samples >= _FIRST

    def begin_anew(self) -> None:
        """Its engine is another process: no alarm goes on. What is usual stays: a device may come back slower."""
        self.level = self._sum = 0.0
        self._alarmed, self.since = False, None

    def leaning(self, shift: float = 0.0) -> bool:
        """Whether it seems to become slower, though that is no alarm yet."""
        return self.known and self._sum >= _LEANING and math.exp(self.level - shift) > _LEANS_BY

    def slowdown(self, shift: float = 0.0) -> float | None:
        """Times the usual seconds, if that is an alarm; 1.0 without one, None while the usual is not known.

        `shift`: the level of its peers (ln), which is the traffic's doing and not the backend's.
        """
        if not self.known:
            return None
        slower = math.exp(self.level - shift)
        return slower if self._alarmed and slower > ACTED_ON else 1.0

    def learn(self, ratio: float, now: float) -> None:
        """Take in one pair of seconds, observed over predicted; what isn't positive is ignored."""
        if ratio <= 0.0 or not math.isfinite(ratio):
            return
        value = math.log(ratio)
        self._samples += 1
        if self._samples <= _FIRST:
            weight = 1.0 / self._samples
            off = value - self._mean
            self._mean += weight * off
            self._variance += weight * (off * (value - self._mean) - self._variance)
            self._updated = now
            return
        spread = max(_LEAST_SPREAD, math.sqrt(self._variance))
        off = max(-_CLIP * spread, min(_CLIP * spread, value - self._mean))
        self.level += _RATE * (value - self._mean - self.level)
        if self._sum <= 0.0 and off > 0.0:
            self.since = now
        self._sum = max(0.0, min(self._sum + off / spread - _SLACK, 2.0 * _ALARM))
        if self._sum >= _ALARM:
            self._alarmed = True
        elif self._sum <= 0.0:
            self._alarmed, self.since = False, None
        if self._sum < 0.5 * _ALARM:  # what is not usual doesn't teach what is
            weight = 1.0 - math.exp(-max(0.0, now - self._updated) / _USUAL_S)
            weight = max(weight, 1.0 / (self._samples + 1.0) if self._samples < 4 * _FIRST else 0.0)
            self._mean += weight * off
            self._variance += weight * (off * off - self._variance)
        elif self.since is not None and now - self.since > _ABSORBED_S:
            self._mean += self.level
            self.begin_anew()
        self._updated = now
