"""Two contenders on the same traffic: the difference of each figure, seed by seed, and how far that is noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from gateway.sim.experiment import Played
from gateway.sim.summary import Summary

__all__ = ["FIGURES", "Difference", "Figure", "differences"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a run; `unit` is "%" for shares, "s", "ms" or ""."""

    name: str
    of: Callable[[Summary], float]
    unit: str
    more_is_better: bool = False


FIGURES = (
    Figure("good answers", lambda s: s.goodput, "%", more_is_better=True),
    Figure("TTFT p50", lambda s: s.ttft_s[0], "s"),
    Figure("TTFT p90", lambda s: s.ttft_s[1], "s"),
    Figure("TPOT p50", lambda s: s.tpot_s[0], "ms"),
    Figure("E2E p50", lambda s: s.e2e_s[0], "s"),
    Figure("prefilled, of the ideal", lambda s: s.prefilled, "%"),
)
"""What is compared."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Second minus first. `error`: standard error of the mean over the seeds, NaN of one; `better`: seeds that gain."""

    figure: Figure
    first: float
    second: float
    mean: float
    error: float
    better: int
    seeds: int

    @property
    def clear(self) -> bool:
        """Whether the mean is over two of its errors away from none; never with fewer than three seeds."""
        return self.seeds >= 3 and abs(self.mean) > 2.0 * self.error


def differences(runs: Sequence[Played], first: str, second: str) -> list[Difference]:
    """Of every figure that both have in at least one seed."""
    by = {(run.contender, run.seed): run.summary for run in runs}
    seeds = sorted({run.seed for run in runs})
    found = []
    for figure in FIGURES:
        pairs = [(figure.of(by[first, seed]), figure.of(by[second, seed])) for seed in seeds]
        pairs = [pair for pair in pairs if not any(map(math.isnan, pair))]
        if not pairs:
            continue
        gaps = [after - before for before, after in pairs]
        sign = 1.0 if figure.more_is_better else -1.0
        found.append(
            Difference(
                figure,
                fmean(before for before, _ in pairs),
                fmean(after for _, after in pairs),
                fmean(gaps),
                stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan,
                sum(sign * gap > 0.0 for gap in gaps),
                len(gaps),
            )
        )
    return found
