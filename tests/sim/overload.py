"""What a queue in the gateway is worth under overload: a trace at 130 % of what an emulated fleet bears.

    python -m tests.sim.overload [--trace FILE]... [--load 1.3] [--minutes 10] [--json]

Virtual time. Three policies play the same requests on a Spark, two 3090s and a PRO 6000: kvgate; the same costs, bound
on arrival; and least requests. Nobody is told how long answers will be.

Goodput: share of all requests that are answered in full, with a TTFT of at most 3 s and a second for every 2000 tokens
of prompt, and at most 100 ms a token; a refusal is a miss. Capacity: requests a second that the fleet works off while
there is always a queue and nobody is turned away. KV asked: what the requests inside an engine hold and, queued there,
still need, over its pool; above 100 % it must let them wait or preempt.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from gateway.sim.baselines import LeastRequests
from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Action, Event, Place, Policy
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.gateway_unheld import BoundOnArrival
from gateway.sim.scheduler import PagedScheduler
from gateway.sim.trace_file import TraceRow, read_trace
from gateway.sim.trace_traffic import played
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import MIXED, anybody, config, engines_of

__all__ = ["POLICIES", "TRACES", "Row", "capacity", "measure"]

TRACES = Path(__file__).parents[1] / "recordings" / "traces"

QUEUE = "queue: {wait: 4s}\n"
"""No longer than clients would wait for a first token."""
PATIENT = {"timeouts": "{first_token: 24h, token_gap: 24h}"}
CALIBRATED_ON = 400
"""Requests of a trace by which the fleet's capacity is found."""
HORIZON_S = 0.05

POLICIES: Mapping[str, Callable[[], Policy]] = {
    "kvgate": lambda: GatewayPolicy.from_yaml(config(MIXED, more=QUEUE), anybody),
    "bound on arrival": lambda: BoundOnArrival.from_yaml(config(MIXED, **PATIENT), anybody),
    "least requests": LeastRequests,
}


@dataclass(frozen=True, slots=True)
class Row:
    """What one policy made of it. Shares of 1, seconds."""

    policy: str
    requests: int
    goodput: float
    preemptions: int
    kv_used: float
    """The most that sequences held of any pool."""
    kv_asked: float
    refused: float
    ttft_p50: float
    ttft_p95: float


class _Observed:
    """A policy, and the most KV cache that it ever asked of an engine."""

    def __init__(self, policy: Policy, tell: Callable[[float], None]) -> None:
        self.policy = policy
        self.used = self.asked = 0.0
        self._tell = tell
        self._given: set[str] = set()
        """Engines that were sent something since the last look."""

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        self.used = max(self.used, *(engine.scheduler.kv_usage for engine in engines.values()))
        self.asked = max(self.used, self.asked, *(_kv_asked(engines[name]) for name in self._given))
        self._tell(now)
        actions = list(self.policy.on_event(now, event, engines))
        self._given = {action.engine for action in actions if isinstance(action, Place)}
        return actions


def _kv_asked(engine: EngineModel) -> float:
    """Share of the pool that sequences hold or wait for."""
    scheduler, size = engine.scheduler, engine.profile.block_size
    assert isinstance(scheduler, PagedScheduler)
    missing = 0
    if scheduler.waiting:
        for sequence in scheduler:
            if not sequence.blocks:
                shared = scheduler.cache.match(sequence.keys_up_to((sequence.total - 1) // size, size))
                missing += -(-sequence.total // size) - len(shared)
    return (scheduler.cache.used_blocks + missing) / scheduler.cache.num_blocks


def longest_of(engines: Mapping[str, EngineModel]) -> int:
    """Tokens of the longest request that some engine holds."""
    return max(engine.profile.max_model_len for engine in engines.values())


def capacity(rows: Sequence[TraceRow], *, requests: int = CALIBRATED_ON) -> float:
    """Requests of this kind that the fleet works off in a second when there is always a queue: of the middle half."""
    engines = engines_of(MIXED)
    arrivals = played(rows, requests / 10.0, 10.0, longest=longest_of(engines))
    more = "queue: {wait: 24h, length: 100000}\n"
    run = simulate(arrivals, engines, GatewayPolicy.from_yaml(config(MIXED, more=more), anybody), horizon_s=HORIZON_S)
    ends = sorted(o.finished_at for o in run.outcomes if o.finished_at is not None)
    first, last = len(ends) // 4, 3 * len(ends) // 4
    return (last - first) / (ends[last] - ends[first])


def measure(
    name: str, rows: Sequence[TraceRow], rate: float, span_s: float, tell: Callable[[float], None] = lambda now: None
) -> Row:
    """Play the trace at so many requests a second through the policy of that name; `tell` is told how far it is."""
    engines = engines_of(MIXED)
    arrivals = played(rows, rate, span_s, longest=longest_of(engines))
    observed = _Observed(POLICIES[name](), tell)
    run = simulate(arrivals, engines, observed, horizon_s=HORIZON_S)
    first = sorted(o.ttft_s for o in run.outcomes if o.ttft_s is not None)
    return Row(
        policy=name,
        requests=len(arrivals),
        goodput=run.goodput(),
        preemptions=sum(engine.counters.preemptions for engine in engines.values()),
        kv_used=observed.used,
        kv_asked=observed.asked,
        refused=sum(o.refused is not None for o in run.outcomes) / len(run.outcomes),
        ttft_p50=_quantile(first, 0.5),
        ttft_p95=_quantile(first, 0.95),
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.overload", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--trace", type=Path, action="append", help="CSV or JSONL; without one the recorded excerpts")
    parser.add_argument("--load", type=float, default=1.3, help="of the fleet's capacity (1.3)")
    parser.add_argument("--minutes", type=float, default=10.0, help="emulated (10)")
    parser.add_argument("--policy", action="append", choices=sorted(POLICIES), help="only these")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    paths = given.trace or sorted(TRACES.glob("*.csv"))
    console = Console(stderr=given.json)
    found = {}
    with Progress(console=console) as progress:
        for path in paths:
            rows = read_trace(path)
            task = progress.add_task(f"{path.stem}: capacity", total=None)
            most = capacity(rows)
            progress.remove_task(task)
            measured = []
            for name in given.policy or POLICIES:
                task = progress.add_task(f"{path.stem}: {name}", total=60.0 * given.minutes)
                tell = lambda now, task=task: progress.update(task, completed=now)  # noqa: E731
                measured.append(measure(name, rows, given.load * most, 60.0 * given.minutes, tell))
                progress.remove_task(task)
            found[path.stem] = {"capacity": most, "load": given.load, "rows": [asdict(row) for row in measured]}
            if not given.json:
                console.print(_table(f"{path.stem}: {given.load:.0%} of {most:.2f} requests/s", measured))
    if given.json:
        print(json.dumps(found, indent=2))


def _table(title: str, rows: Iterable[Row]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in ("requests", "goodput", "preemptions", "KV used", "KV asked", "refused", "TTFT p50", "TTFT p95"):
        table.add_column(name, justify="right")
    for row in rows:
        cells = (f"{row.goodput:.1%}", str(row.preemptions), f"{row.kv_used:.0%}", f"{row.kv_asked:.0%}")
        times = (f"{row.refused:.1%}", f"{row.ttft_p50:.2f} s", f"{row.ttft_p95:.2f} s")
        table.add_row(row.policy, str(row.requests), *cells, *times)
    return table


if __name__ == "__main__":
    main()
