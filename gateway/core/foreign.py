"""Whose the KV cache is that an engine reports in use: ours as far as we know, else somebody else's."""

from __future__ import annotations

__all__ = ["HALF_LIFE", "SAMPLE_LIFE", "ForeignLoad"]

SAMPLE_LIFE = 10.0
"""Seconds after which a sample says nothing any more: silent metrics neither attract nor repel traffic."""
HALF_LIFE = 60.0
"""Seconds in which half of what others held is taken to be gone, once no sample tells."""
WEIGHT = 0.2
"""Of one sample."""
NOTICED = 0.03
"""Share of the pool that must be unexplained before others are suspected (these four: algorithms 2.1)."""
_FORGOTTEN = 0.005
"""Share of the pool below which an estimate that falls is nothing."""


class ForeignLoad:
    """KV tokens that others hold on one backend. `now` in seconds on one monotonic clock.

    What is ours at the moment of a sample is not known to the token: a prompt may have been read in part, an answer has
    grown since it was counted last. The estimate moves only as far as the sample contradicts it.
    """

    __slots__ = ("_at", "_tokens")

    def __init__(self) -> None:
        self._tokens = 0.0
        self._at: float | None = None

    def observe(self, used: int, least: int, most: int, pool: int, now: float) -> None:
        """The engine had `used` tokens in use, of which between `least` and `most` were ours."""
        tokens = self.tokens(now)
        low, high = max(0, used - most), max(0, used - least)
        if tokens < low and (tokens > 0.0 or low > NOTICED * pool):
            tokens += WEIGHT * (low - tokens)
        elif tokens > high:
            tokens += WEIGHT * (high - tokens)
            if tokens < _FORGOTTEN * pool:
                tokens = float(high)
        self._tokens, self._at = min(tokens, float(used)), now

    def bound(self, most: float) -> None:
        """They can't hold more than this."""
        self._tokens = min(self._tokens, most)

    def forget(self) -> None:
        """The engine was started anew."""
        self._tokens, self._at = 0.0, None

    def tokens(self, now: float) -> float:
        """What others hold; half as much every minute while no sample tells."""
        if self._at is None or self._tokens == 0.0:
            return 0.0
        silent = now - self._at - SAMPLE_LIFE
        return self._tokens if silent <= 0.0 else self._tokens * 0.5 ** (silent / HALF_LIFE)
