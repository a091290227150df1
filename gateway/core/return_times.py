"""When a conversation comes back: after a tool has run, or after a person has read. Learned by client.

A log-normal of the seconds between an answer and the next request, and the share of answers that were followed by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["FORGOTTEN_AFTER", "ReturnTimes"]

FORGOTTEN_AFTER = 3600.0
"""Seconds after which a conversation counts as over."""
_LEARN = 0.05
_CLIENTS = 1024
_SQRT2 = math.sqrt(2.0)


@dataclass(slots=True)
class _Habit:
    """`share` of answers are followed; mean and variance of the log of the seconds till then."""

    share: float
    mean: float
    variance: float = 1.5

    def probability(self, idle: float) -> float:
        """That it comes back, when it has not for so long: Bayes' rule on who would have been back by now."""
        spread = _SQRT2 * math.sqrt(self.variance)
        still_out = 0.5 * math.erfc((math.log(max(idle, 1e-3)) - self.mean) / spread)
        to_come = self.share * still_out
        return to_come / (to_come + 1.0 - self.share)


class ReturnTimes:
    """Habits of clients, apart for answers that ended with a call of a tool and those that did not. Seconds."""

    def __init__(self) -> None:
        self._habits: dict[tuple[str, bool], _Habit] = {}

    def probability(self, client: str, idle: float, *, calls: bool) -> float:
        """The probability that a conversation comes back which has been idle for so long; `calls`: a tool runs."""
        return 0.0 if idle >= FORGOTTEN_AFTER else self._of(client, calls).probability(idle)

    def came_back(self, client: str, idle: float, *, calls: bool) -> None:
        """One came back after so long."""
        habit = self._of(client, calls)
        habit.share += _LEARN * (1.0 - habit.share) * 0.99
        off = math.log(min(max(idle, 1e-3), FORGOTTEN_AFTER)) - habit.mean
        habit.mean += _LEARN * off
        habit.variance += _LEARN * (min(off * off, 9.0) - habit.variance)
        habit.variance = max(habit.variance, 0.1)

    def stayed_away(self, client: str, *, calls: bool) -> None:
        """One did not."""
        habit = self._of(client, calls)
        habit.share -= _LEARN * habit.share

    def _of(self, client: str, calls: bool) -> _Habit:
        key = (client, calls)
        found = self._habits.get(key)
        if found is None:
            if len(self._habits) >= _CLIENTS:
                del self._habits[next(iter(self._habits))]
            # To begin with: tools take seconds and are nearly always followed up, people a minute, and half of them.
            found = self._habits[key] = _Habit(0.95, math.log(5.0)) if calls else _Habit(0.6, math.log(40.0))
        return found
