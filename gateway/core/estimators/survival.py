"""Lengths seen so far as a discrete survival curve: a log histogram that knows what was cut short.

A stream that ended at a limit, or whose client left, only says that its length would have been at least that. Counted
as ends, such streams would teach the limit as the natural length; here they count as survivors up to that point
(Kaplan-Meier on fixed bins).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import add, mul

from gateway.core.estimators.censored_tail import draw_on

__all__ = ["BINS", "EDGES", "SketchState", "SurvivalCurve", "SurvivalSketch", "lognormal_counts"]

BINS = 128
_RATIO = 1.1


def _edges() -> tuple[int, ...]:
    edges: list[int] = []
    for i in range(BINS):
        edges.append(max(edges[-1] + 1 if edges else 1, math.ceil(_RATIO**i)))
    return tuple(edges)


EDGES = _edges()
"""Upper edge of each bin, tokens: 1..39 singly, then 10 % wide, up to 181 k. With bins twice as wide the peak
that many workloads have at a usual length lies within one, and quantiles there were seen to be 5 points off."""

_HALF_WIDTHS = tuple([(edge - before) / 2.0 for before, edge in pairwise((0, *EDGES))])
_GROWTH = 2.0 ** (1.0 / 500.0)
_HALF_LIFE_SECONDS = 86_400.0
_RESCALE = 1e9
_TINY = 1e-9
_PAST_GRID = 1.25
_ROUNDED = 1.0 + 1e-6
"""Sums of the same samples in another order may differ by so much."""


@dataclass(frozen=True, slots=True)
class SketchState:
    """What a sketch holds, to be kept beyond the process: counts by bin, of which `weight` are one new sample's.

    `age`: seconds since the last sample, None where no time was told.
    """

    ended: tuple[float, ...]
    reached: tuple[float, ...]
    weight: float = 1.0
    age: float | None = None


class SurvivalSketch:
    """Decayed counts of ends and of cut-off streams by bin: half of the weight goes with 500 samples, and with 24 h."""

    __slots__ = ("_ended", "_last", "_reached", "_weight")

    def __init__(self) -> None:
        self._ended = [0.0] * BINS
        self._reached = [0.0] * BINS  # came as far as this bin, those cut off within it counted in part
        self._weight = 1.0  # of the next sample: it grows, so that older counts need no touching
        self._last: float | None = None

    def learn(self, tokens: int, finished: bool, now: float | None = None) -> None:
        """Count one stream of `tokens` tokens; `finished` means that the model ended it. `now` in seconds."""
        self._weight *= _GROWTH
        if now is not None:
            if self._last is not None and now > self._last:
                # Past a thousand half-lives nothing is left anyway, and the power would overflow.
                self._weight *= 2.0 ** min(900.0, (now - self._last) / _HALF_LIFE_SECONDS)
            self._last = now
        if self._weight > _RESCALE:
            self._ended = [count / self._weight for count in self._ended]
            self._reached = [count / self._weight for count in self._reached]
            self._weight = 1.0
        bin_ = min(BINS - 1, bisect_left(EDGES, max(1, tokens)))
        whole = bin_ + 1 if finished else bin_
        self._reached[:whole] = [count + self._weight for count in self._reached[:whole]]
        if finished:
            self._ended[bin_] += self._weight
            return
        # Seen for a part of its last bin only: without that part, the few that ended early in the bin of a common
        # limit would look like all that reached it.
        start = EDGES[bin_ - 1] if bin_ else 0
        self._reached[bin_] += self._weight * min(1.0, (tokens - start) / (EDGES[bin_] - start))

    def counts(self) -> tuple[list[float], list[float]]:
        """By bin, in units of the newest sample: streams that ended in it, and streams that could have."""
        newest = self._weight
        return [count / newest for count in self._ended], [count / newest for count in self._reached]

    def state(self, now: float) -> SketchState:
        """Its counts as a value. `now` in seconds, on the clock that `learn` is told."""
        age = None if self._last is None else max(0.0, now - self._last)
        return SketchState(tuple(self._ended), tuple(self._reached), self._weight, age)

    @classmethod
    def restored(cls, state: SketchState, now: float) -> SurvivalSketch:
        """The sketch of a state that was kept. Raises ValueError for one that no sketch can have had."""
        if not len(state.ended) == len(state.reached) == BINS or not 0.0 < state.weight < math.inf:
            raise ValueError("a sketch of other bins")
        ended = [count / state.weight for count in state.ended]
        reached = [count / state.weight for count in state.reached]
        if not all(0.0 <= ends <= risk * _ROUNDED < _RESCALE for ends, risk in zip(ended, reached, strict=True)):
            raise ValueError("counts that no answers make")
        sketch = cls()
        sketch._ended, sketch._reached = ended, reached
        sketch._last = None if state.age is None else now - max(0.0, state.age)
        return sketch

    def leaning_on(
        self, ended: Sequence[float], reached: Sequence[float], streams: float
    ) -> tuple[list[float], list[float]]:
        """Counts like `counts`, with those of a wider sketch added as if they were `streams` streams."""
        newest, scale = self._weight, streams / reached[0]
        return (
            [own / newest + scale * wide for own, wide in zip(self._ended, ended, strict=True)],
            [own / newest + scale * wide for own, wide in zip(self._reached, reached, strict=True)],
        )


def lognormal_counts(median: float, sigma: float) -> tuple[list[float], list[float]]:
    """Counts of one imagined stream with a log-normal length, as a prior: (ended, reached) by bin."""
    above = [0.5 * math.erfc(math.log(edge / median) / (sigma * math.sqrt(2.0))) for edge in EDGES]
    reached = [1.0, *above[:-1]]
    return [alive - left for alive, left in zip(reached, above, strict=True)], reached


class SurvivalCurve:
    """P(length > tokens), piecewise linear between bin edges; built from blended counts."""

    __slots__ = ("_areas", "_gone", "_left", "mean")

    def __init__(self, ended: Sequence[float], reached: Sequence[float]) -> None:
        stays = [
            1.0 if risk <= _TINY else 1.0 - ends / risk if ends < risk else 0.0
            for ends, risk in zip(ended, reached, strict=True)
        ]
        left = list(accumulate(stays, mul, initial=1.0))
        draw_on(left, reached, EDGES)
        self._left = left  # at 0 and at each edge
        self._gone = [1.0 - share for share in left]
        self._areas: list[float] = list(accumulate(map(mul, _HALF_WIDTHS, map(add, left, left[1:])), initial=0.0))
        self.mean: float = self._areas[-1]
        """Expected length in tokens: the area under the curve."""

    def left(self, tokens: float) -> float:
        """Share of streams that are longer than `tokens`."""
        if tokens >= EDGES[-1]:
            return self._left[-1]
        b = bisect_left(EDGES, tokens)
        start, stop = (EDGES[b - 1] if b else 0), EDGES[b]
        return self._left[b + 1] + (self._left[b] - self._left[b + 1]) * (stop - tokens) / (stop - start)

    def quantile(self, q: float, generated: int = 0) -> int:
        """The length, in tokens, that a share `q` of the streams stays under once they have `generated` tokens."""
        alive = self.left(generated)
        if alive < _TINY or generated >= EDGES[-1]:
            return math.ceil(max(1, generated) * _PAST_GRID)
        wanted = 1.0 - (1.0 - q) * alive
        b = bisect_left(self._gone, wanted)
        if b >= len(self._gone):
            return EDGES[-1]
        if b == 0:
            return max(1, generated)
        start, stop = (EDGES[b - 2] if b > 1 else 0), EDGES[b - 1]
        rise = self._gone[b] - self._gone[b - 1]
        length = start + (stop - start) * (wanted - self._gone[b - 1]) / rise
        return max(generated, math.ceil(length - _TINY), 1)

    def remaining(self, generated: int, cap: int) -> float:
        """Expected further tokens of a stream that has `generated` and ends at `cap` at the latest."""
        if cap <= generated:
            return 0.0
        alive = self.left(generated)
        if alive < _TINY or generated >= EDGES[-1]:
            return min(float(cap - generated), generated * (_PAST_GRID - 1.0))
        return (self._area(cap) - self._area(generated)) / alive

    def _area(self, tokens: int) -> float:
        """Area under the curve up to there: the expected tokens of a stream that is cut there."""
        b = bisect_left(EDGES, tokens)
        if b >= BINS:
            return self._areas[-1]
        start = EDGES[b - 1] if b else 0
        return self._areas[b] + (tokens - start) * (self._left[b] + self.left(tokens)) / 2.0
