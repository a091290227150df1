"""Do predicted quantiles of answer lengths keep their word? Replays traces and compares with what was observed.

    python -m tests.tokens.calibration [--json] [--plot FILE.svg] [TRACE...]

Each answer is predicted with what was known when its request came, and learned from when it ended. A TRACE is a CSV or
JSONL file with `timestamp_ms` and `output_tokens`; without one the excerpts in tests/recordings/traces are taken.
"""

from __future__ import annotations

import argparse
import csv
import heapq
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gateway.core.estimators.output_length import OutputKey, OutputLengthEstimator
from tests.tokens.calibration_plot import plot

__all__ = ["CENSORED_AT", "LEVELS", "TRACES", "Calibration", "Row", "calibrate", "load", "recovered_median"]

TRACES = Path(__file__).parents[1] / "recordings" / "traces"
LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.93, 0.95, 0.98)
SHOWN = (0.5, 0.7, 0.9, 0.95, 0.98)
CENSORED_AT = 512
_SECONDS_A_TOKEN = 0.03
_GROWN = (100, 400)
"""Tokens of answers under way at which what is still to come is predicted again."""
_HALF_LIFE = 500.0


@dataclass(frozen=True, slots=True)
class Row:
    """One request: seconds from the start, and tokens of its answer."""

    at: float
    tokens: int
    client: str = ""


@dataclass(frozen=True, slots=True)
class Calibration:
    """By predicted level, the share of the answers that stayed within it; `answers` of them."""

    name: str
    answers: int
    shares: dict[float, float]

    def off(self, levels: Iterable[float] = (0.5, 0.9, 0.95)) -> float:
        """The largest difference, in points."""
        return max(100.0 * abs(self.shares[level] - level) for level in levels)


def load(path: Path) -> list[Row]:
    """The requests of a trace in order of arrival."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file) if path.suffix == ".csv" else map(json.loads, file)
        client = path.stem
        found = [Row(float(row["timestamp_ms"]) / 1000.0, int(row["output_tokens"]), client) for row in rows]
    return sorted(found, key=lambda row: row.at)


def calibrate(name: str, rows: Sequence[Row], grown: int = 0) -> Calibration:
    """Replay a trace; with `grown`, predict only answers that get so long, at the moment when they are."""
    estimator, running = OutputLengthEstimator(), list[tuple[float, int, str]]()
    within, answers = dict.fromkeys(LEVELS, 0), 0
    for row in rows:
        now = row.at + grown * _SECONDS_A_TOKEN
        while running and running[0][0] <= now:
            ended, tokens, client = heapq.heappop(running)
            estimator.learn(OutputKey("model", client), tokens, True, ended)
        key = OutputKey("model", row.client)
        if row.tokens > grown:
            answers += 1
            for level in LEVELS:
                within[level] += row.tokens <= estimator.quantile(level, key, grown)
        heapq.heappush(running, (row.at + 1.0 + row.tokens * _SECONDS_A_TOKEN, row.tokens, row.client))
    return Calibration(name, answers, {level: count / max(1, answers) for level, count in within.items()})


def recovered_median(lengths: Sequence[int], cap: int, share: float = 1.0, seed: int = 1) -> tuple[int, int, int]:
    """Teach a `share` of the lengths, shuffled, cut at `cap`; returns the median found, the true one with the same
    weights, and what one finds who takes cut answers for whole ones."""
    rng = random.Random(seed)
    shuffled = list(lengths)
    rng.shuffle(shuffled)
    estimator, naive, key = OutputLengthEstimator(), OutputLengthEstimator(), OutputKey("model", "client")
    for length in shuffled:
        cut = rng.random() < share and length > cap
        estimator.learn(key, cap if cut else length, not cut)
        naive.learn(key, cap if cut else length, True)
    half, total = 0.0, 0.0
    weights = sorted((length, 0.5 ** ((len(shuffled) - at) / _HALF_LIFE)) for at, length in enumerate(shuffled))
    half = sum(weight for _, weight in weights) / 2.0
    for length, weight in weights:
        total += weight
        if total >= half:
            return estimator.quantile(0.5, key), length, naive.quantile(0.5, key)
    raise ValueError("no lengths")


def main() -> None:
    """Replay the traces and show how right the predictions were."""
    parser = argparse.ArgumentParser(description="How well predicted answer lengths hold on recorded traces.")
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw predicted quantile against observed share")
    asked = parser.parse_args()
    traces = {path.stem: load(path) for path in asked.traces or sorted(TRACES.glob("*.csv"))}
    found = [calibrate(name, rows) for name, rows in traces.items()]
    together = sorted((row for rows in traces.values() for row in rows), key=lambda row: row.at)
    found.append(calibrate("all at once, a client each", together))
    grown = [calibrate(f"{name}, from {at} on", rows, at) for name, rows in traces.items() for at in _GROWN]
    medians = {name: recovered_median([row.tokens for row in rows], CENSORED_AT) for name, rows in traces.items()}
    if asked.plot is not None:
        asked.plot.write_text(plot({each.name: each.shares for each in found}), encoding="utf-8")
    if asked.json:
        names = ("found", "true", "taking cut answers for whole")
        print(json.dumps({
            "calibration": [{**asdict(each), "off": each.off()} for each in (*found, *grown)],
            f"median when cut at {CENSORED_AT}": {n: dict(zip(names, m, strict=True)) for n, m in medians.items()},
        }, indent=2))  # fmt: skip
        return
    _show(found, grown, medians)


def _show(found: list[Calibration], grown: list[Calibration], medians: dict[str, tuple[int, int, int]]) -> None:
    console = Console()
    table = Table("trace", "answers", *(f"{level:.0%}" for level in SHOWN), "off by at most")
    for part in (found, grown):
        for each in part:
            shares = [f"{100.0 * each.shares[level]:.1f}" for level in SHOWN]
            table.add_row(each.name, str(each.answers), *shares, f"{each.off():.1f}")
        table.add_section()
    console.print("Share of answers, in %, within the predicted quantile (off: at 50, 90 and 95 %, in points):", table)
    table = Table("trace", "median found", "true median", "taking cut answers for whole")
    for name, medians_of in medians.items():
        table.add_row(name, *map(str, medians_of))
    console.print(f"Every answer cut at {CENSORED_AT} tokens, in tokens:", table)


if __name__ == "__main__":
    main()
