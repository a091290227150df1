"""What the gateway finds wrong with broken engines, and how soon: each fault, on some of the fleet, at two loads.

    python -m tests.sim.faults [--seeds 3] [--hours 2] [--json]

Virtual time. A fleet of four engines that are unlike works for five minutes before the fault, and five with it. Named:
the first cause after the fault that is more than a queue. Clean traffic goes on for hours, with the constants of each
engine moved by chance every ten minutes, and no engine may be taken out of it.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from rich.console import Console
from rich.progress import track
from rich.table import Table

from gateway.core.degrading.causes import Cause
from gateway.core.snapshot import Health
from gateway.sim.engine_model import HEALTHY, EngineModel, Slowdown
from gateway.sim.events import Action, Breakdown, Event
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import MIXED, anybody, config, engines_of, stream

__all__ = ["FAULTS", "Seen", "clean", "play"]

ONSET, UNTIL = 300.0, 600.0
RATES = {"low": 1.5, "high": 4.0}
"""Requests a second: a sixth and two thirds of what the fleet bears."""

QUIET = (Cause.NONE, Cause.QUEUEING)


@dataclass(frozen=True, slots=True)
class Kind:
    """A fault, and the causes that name it rightly."""

    name: str
    right: tuple[Cause, ...]
    slowdown: Slowdown = HEALTHY
    hang: bool = False
    crash: bool = False


FAULTS = (
    Kind("slow prefill", (Cause.COMPUTE,), Slowdown(prefill=3.0)),
    Kind("slow decode", (Cause.BANDWIDTH, Cause.LINK), Slowdown(decode=3.0)),
    Kind("both slow", (Cause.CLOCK, Cause.THERMAL, Cause.POWER), Slowdown(prefill=3.0, decode=3.0)),
    Kind("a third slower", (Cause.CLOCK, Cause.THERMAL, Cause.POWER), Slowdown(prefill=1.6, decode=1.6)),
    Kind("hang", (Cause.HUNG,), hang=True),
    Kind("dead", (Cause.DEAD,), hang=True, crash=True),
)


@dataclass(slots=True)
class Seen:
    """What one run showed.

    named: by broken engine the cause that was held longest, and the seconds after which a first one was named; wrongly:
    causes named of others.
    """

    named: dict[str, tuple[Cause, float]] = field(default_factory=dict)
    wrongly: Counter[Cause] = field(default_factory=Counter)
    ejected: int = 0
    """Engines that were well and got no requests for it."""
    failed: int = 0
    requests: int = 0
    goodput: float = 0.0


class _Watched:
    """A gateway whose verdicts are written down."""

    def __init__(self, policy: GatewayPolicy, broken: Iterable[str], onset: float) -> None:
        self.policy, self.broken, self.onset, self.seen = policy, set(broken), onset, Seen()
        self._out: set[str] = set()
        self._wrong: set[str] = set()
        self._last: dict[str, Cause] = {}
        self._held: dict[str, Counter[Cause]] = {}
        self._at = 0.0

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        actions = list(self.policy.on_event(now, event, engines))
        for member in self.policy.desk.fleet.roster:
            name, cause = member.backend.name, member.condition.verdict.cause
            known = self._last.get(name)
            self._last[name] = cause
            if name in self.broken and now >= self.onset:
                if cause not in QUIET:
                    first = self.seen.named.get(name, (cause, now - self.onset))[1]
                    held = self._held.setdefault(name, Counter())
                    held[cause] += now - max(self._at, self.onset)
                    self.seen.named[name] = held.most_common(1)[0][0], first
            elif cause not in QUIET and cause is not known:
                self.seen.wrongly[cause] += 1
            if name not in self.broken and member.health in (Health.OPEN, Health.DOWN) and name not in self._out:
                self._out.add(name)
                self.seen.ejected += 1
        self._at = now
        return actions


def play(kind: Kind | None, broken: tuple[str, ...], rate: float, seed: int, *, until: float = UNTIL) -> Seen:
    """One run; without a kind nothing breaks."""
    breakdowns = [] if kind is None else [Breakdown(ONSET, b, kind.slowdown, kind.hang, kind.crash) for b in broken]
    return _played(breakdowns, broken if kind is not None else (), rate, seed, until)


def _played(breakdowns: list[Breakdown], broken: tuple[str, ...], rate: float, seed: int, until: float) -> Seen:
    asked = stream(seed, rate, until)
    policy = GatewayPolicy.from_yaml(config(MIXED), anybody, breakdowns=breakdowns, seed=seed)
    watched = _Watched(policy, broken, ONSET)
    run = simulate(asked, engines_of(MIXED), watched, breakdowns=breakdowns, horizon_s=0.05)
    seen = watched.seen
    seen.requests, seen.goodput = len(asked), run.goodput()
    seen.failed = sum(one.finish_reason is None for one in run.outcomes)
    return seen


def clean(hours: float, rate: float, seed: int) -> Seen:
    """Hours without a fault, in which every engine's speed moves by a tenth (one standard deviation) now and then."""
    chance, moved, now = random.Random(seed), [], 0.0
    while (now := now + 600.0) < 3600.0 * hours:
        for name in MIXED:
            speed = Slowdown(prefill=chance.lognormvariate(0, 0.1), decode=chance.lognormvariate(0, 0.1))
            moved.append(Breakdown(now, name, speed))
    return _played(moved, (), rate, seed, 3600.0 * hours)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.faults", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--hours", type=float, default=2.0, help="of clean traffic (2)")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    console = Console(stderr=given.json)
    cells = [(k, n, load) for k in FAULTS for n in (1, 2, 3) for load in RATES]
    rows, right, named = [], 0, 0
    names = tuple(MIXED)
    for kind, count, load in track(cells, "faults", console=console):
        runs = [
            play(kind, tuple(names[(seed + i) % 4] for i in range(count)), RATES[load], seed)
            for seed in range(given.seeds)
        ]
        causes = Counter(cause for run in runs for cause, _ in run.named.values())
        after = [seconds for run in runs for _, seconds in run.named.values()]
        broken = count * len(runs)
        right += sum(causes[cause] for cause in kind.right)
        named += broken
        rows.append(
            {
                "fault": kind.name, "engines": count, "load": load,
                "named": {str(cause): times for cause, times in causes.most_common()}, "unnoticed": broken - len(after),
                "seconds_median": median(after) if after else None,
                "others_blamed": sum(sum(run.wrongly.values()) for run in runs),
                "failed": sum(run.failed for run in runs) / sum(run.requests for run in runs),
                "goodput": sum(run.goodput for run in runs) / len(runs),
            }
        )  # fmt: skip
    well = [clean(given.hours, RATES[load], seed) for load in RATES for seed in range(given.seeds)]
    summary = {
        "right": right / named,
        "clean_hours": given.hours * len(well),
        "clean_ejected": sum(run.ejected for run in well),
        "clean_blamed": {str(cause): times for cause, times in sum((run.wrongly for run in well), Counter()).items()},
    }
    if given.json:
        print(json.dumps({"faults": rows, **summary}, indent=2))
        return
    table = Table("fault", "engines", "load", "named", "unnoticed", "after s", "others blamed", "failed", "good")
    for row in rows:
        told = ", ".join(f"{cause} {times}" for cause, times in row["named"].items())
        after = "-" if row["seconds_median"] is None else f"{row['seconds_median']:.0f}"
        table.add_row(row["fault"], str(row["engines"]), row["load"], told, str(row["unnoticed"]), after,
                      str(row["others_blamed"]), f"{row['failed']:.1%}", f"{row['goodput']:.0%}")  # fmt: skip
    console.print(table)
    console.print(f"{right / named:.0%} named rightly; {summary['clean_hours']:g} clean hours of four engines: "
                  f"{summary['clean_ejected']} taken out, blamed: {summary['clean_blamed'] or 'none'}")  # fmt: skip


if __name__ == "__main__":
    main()
