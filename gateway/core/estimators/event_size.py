"""How many tokens a streamed event carries: one on most engines, more where drafts are accepted several at a time."""

from __future__ import annotations

__all__ = ["EventSize"]

_RATE = 0.2
_SAMPLE = 16
"""Events below which an answer's first and last ones say too much."""
_LEAST, _MOST = 0.5, 16.0


class EventSize:
    """Tokens an event, learned from answers whose usage was told in the end."""

    __slots__ = ("mean",)

    def __init__(self) -> None:
        self.mean = 1.0

    @classmethod
    def restored(cls, mean: float) -> EventSize:
        """As it was kept. Raises ValueError for a mean that no answers have."""
        if not _LEAST <= mean <= _MOST:
            raise ValueError("events of a size that none have")
        size = cls()
        size.mean = mean
        return size

    def learn(self, events: int, tokens: int) -> None:
        """Learn one answer of so many events with text, in which its engine counted so many tokens."""
        if events >= _SAMPLE:
            self.mean += _RATE * (min(_MOST, max(_LEAST, tokens / events)) - self.mean)

    def tokens(self, events: int) -> int:
        """Tokens in so many events."""
        return round(events * self.mean)
