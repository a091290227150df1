"""What lies beyond a limit at which almost all answers were cut: a log-normal tail, fitted to what was seen below it.

Counts say nothing there, and a prior made for other workloads would decide alone. Answer lengths are about log-normal,
so the part below the limit tells spread and median: on a normal scale it is a straight line, which is drawn on.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

__all__ = ["draw_on"]

_SEEN = 0.05
"""Part of the answers expected to get so far of which at least so many must have been followed further."""
_WORTH = 0.02
"""A limit that fewer answers reach leaves nothing to draw on."""
_ENOUGH = 0.08
"""Answers must have ended below the limit, by share; of fewer no line can be drawn."""
_POINTS = (1.0, 0.85, 0.7, 0.55, 0.4, 0.25)
_NARROWEST, _WIDEST = 0.4, 2.0
"""Sigma of log-normal answer lengths, by what is published of them."""


def draw_on(left: list[float], reached: Sequence[float], edges: Sequence[int]) -> None:
    """Replace what `left` (by 0 and each of `edges`, the share of longer answers) says beyond a limit, if there is one.

    `reached`: answers that came as far as each bin, by which a limit shows.
    """
    first = reached[0] * _SEEN
    limit = next((b for b, risk in enumerate(reached) if risk < first * left[b]), 0)
    if not limit or left[limit] < _WORTH or 1.0 - left[limit] < _ENOUGH:
        return
    ended = 1.0 - left[limit]
    gone = [1.0 - share for share in left[: limit + 1]]
    points = [(_length_at(gone, edges, part * ended), _normal_quantile(part * ended)) for part in _POINTS]
    (x, z), rest = points[0], points[1:]
    over = sum((x - each) ** 2 for each, _ in rest)
    rise = sum((x - each) * (z - height) for each, height in rest)
    sigma = min(_WIDEST, max(_NARROWEST, over / rise)) if rise > 0.0 and over > 0.0 else _WIDEST
    median = x - sigma * z
    for b in range(limit, len(edges)):
        left[b + 1] = min(left[b], 1.0 - _normal((math.log(edges[b]) - median) / sigma))


def _length_at(gone: Sequence[float], edges: Sequence[int], share: float) -> float:
    """The logarithm of the length that this share of answers does not exceed."""
    b = max(1, bisect_left(gone, share))
    start, stop = (edges[b - 2] if b > 1 else 0), edges[b - 1]
    rise = gone[b] - gone[b - 1]
    return math.log(max(0.5, start + (stop - start) * ((share - gone[b - 1]) / rise if rise > 0.0 else 1.0)))


def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def _normal_quantile(share: float) -> float:
    low, high = -8.0, 8.0
    for _ in range(30):
        middle = (low + high) / 2.0
        if _normal(middle) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0
