"""How far to believe a predicted prefix hit: a Beta posterior per backend and reuse distance.

Fed by what engines report, it absorbs without configuration: a cache smaller than thought, foreign traffic, stolen
slots, hybrid models whose prefix cache silently never hits, restarts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.core.prefix.reuse import EDGES, Match

__all__ = ["PrefixTrust"]

_BINS = len(EDGES)
_MEMORY = 0.98
"""Decay per update: about 50 samples."""
_PRIOR = ((1.95, 0.05), (1.9, 0.1), (1.8, 0.2), (1.8, 0.2)) + ((1.3, 0.7),) * 2 + ((0.4, 1.6),) * 2
"""(hits, misses) by bin, worth two observations: hits are likely within 0.4 cache sizes, unlikely past one. A stronger
prior would need some fifty misses to believe that an engine has no cache at all; this one needs ten. What was read just
now is all but certain: at 0.9 a burst of equals on one long context counted as a tenth of it each, and was sent away
from the engine that had it (mean time to first token of thirty agents on two unlike engines 9.6 s, at 0.975 6.7 s)."""
_AS_GOOD_AS_ALL = 0.9
_MOST = 1.0 / (1.0 - _MEMORY) + 2.0
"""No bin holds more, the prior included."""


class PrefixTrust:
    """The probability that blocks we believe a backend to hold are really there, learned from reported cached tokens.

    Keys as in PrefixIndex. Residency falls with distance, so evidence spreads: a miss nearby is one far away, a hit far
    away is one nearby.
    """

    def __init__(self) -> None:
        self._hits: dict[str, list[float]] = {}
        self._misses: dict[str, list[float]] = {}
        self._version = 0

    @property
    def version(self) -> int:
        """Grows with everything learned or forgotten."""
        return self._version

    def probability(self, backend: str, bin_: int) -> float:
        """Probability that a block in this bin of reuse distance is resident."""
        if backend not in self._hits:
            hits, misses = _PRIOR[bin_]
        else:
            hits, misses = self._hits[backend][bin_], self._misses[backend][bin_]
        return hits / (hits + misses)

    def share(self, backend: str, match: Match) -> float:
        """Trust in a match as one number: the expected part of its bytes that is resident; 0 for no match."""
        if not match.bytes:
            return 0.0
        return self._expected_bytes(backend, match) / match.bytes

    def expected_hit(self, backend: str, match: Match, prompt_tokens: int, block: int = 1) -> int:
        """Tokens of the prompt expected from the cache: whole blocks of `block`, never all (the last is computed)."""
        if not match.bytes or prompt_tokens <= 1:
            return 0
        tokens = int(prompt_tokens * self._expected_bytes(backend, match) / match.total)
        tokens = min(tokens, prompt_tokens - 1)
        return tokens - tokens % max(1, block)

    def learn(self, backend: str, match: Match, prompt_tokens: int, cached_tokens: int, block: int = 1) -> None:
        """Compare the match that was predicted at dispatch with the cached tokens that the engine reported.

        A stretch that holds no whole block proves nothing. One update a bin and request, of weight 1.
        """
        evidence: dict[int, float] = {}
        start = 0.0
        for segment in match.segments:
            end = prompt_tokens * segment.end / match.total
            whole = min(end, prompt_tokens - 1) // max(1, block) * block
            if whole > start:
                found = min(1.0, max(0.0, (cached_tokens - start) / (whole - start)))
                evidence[segment.bin] = 1.0 if found >= _AS_GOOD_AS_ALL else found
            start = end
        if not evidence:
            return
        hits = self._hits.setdefault(backend, [prior[0] for prior in _PRIOR])
        misses = self._misses.setdefault(backend, [prior[1] for prior in _PRIOR])
        for bin_, found_here in _spread(evidence):
            hits[bin_] = hits[bin_] * _MEMORY + found_here
            misses[bin_] = misses[bin_] * _MEMORY + 1.0 - found_here
        self._version += 1

    def state(self) -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
        """What was learned, by backend: (hits, misses) by bin."""
        return {backend: (tuple(hits), tuple(self._misses[backend])) for backend, hits in self._hits.items()}

    def restore(self, backend: str, hits: Sequence[float], misses: Sequence[float]) -> None:
        """Take over what was learned before. Raises ValueError for counts that no answers make."""
        counts = (*hits, *misses)
        if not len(hits) == len(misses) == _BINS or not all(0.0 <= count < _MOST for count in counts):
            raise ValueError("counts of other bins")
        if not all(hit + miss > 0.0 for hit, miss in zip(hits, misses, strict=True)):
            raise ValueError("counts that no answers make")
        self._hits[backend], self._misses[backend] = list(hits), list(misses)
        self._version += 1

    def forget(self, backend: str) -> None:
        """Start over with the prior: another engine, or another configuration of it."""
        if self._hits.pop(backend, None) is not None:
            del self._misses[backend]
            self._version += 1

    def _expected_bytes(self, backend: str, match: Match) -> float:
        expected, start = 0.0, 0
        for segment in match.segments:
            expected += (segment.end - start) * self.probability(backend, segment.bin)
            start = segment.end
        return expected


def _spread(evidence: dict[int, float]) -> Iterator[tuple[int, float]]:
    """What the evidence says of each bin: its own, else a full hit further away, else a full miss nearer by."""
    furthest_hit = max((bin_ for bin_, found in evidence.items() if found == 1.0), default=-1)
    nearest_miss = min((bin_ for bin_, found in evidence.items() if found == 0.0), default=_BINS)
    for bin_ in range(_BINS):
        if bin_ in evidence:
            yield bin_, evidence[bin_]
        elif bin_ < furthest_hit:
            yield bin_, 1.0
        elif bin_ > nearest_miss:
            yield bin_, 0.0
