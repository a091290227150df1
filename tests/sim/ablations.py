"""What each part of the decision is worth: the same traffic without it, on an emulated fleet in virtual time.

    python -m tests.sim.ablations TRACE:RATE... [--seeds 3] [--requests 320] [--jobs 1]

RATE: requests a second. The fleet: two Sparks, four 3090s and a PRO 6000, each 20 % off its catalogue entry. A seed is
another segment of the trace with other devices; differences are paired by seed. Goodput: share of all requests that are
answered with a TTFT of at most 3 s and a second for every 2000 tokens of prompt, and at most 100 ms a token.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any
from unittest.mock import patch

from gateway.config import offers
from gateway.config.load import load
from gateway.core import choosing, pump, weighing
from gateway.core.estimators.decode_speed import DecodeSpeed
from gateway.core.estimators.prefill_speed import PrefillSpeed
from gateway.core.estimators.speed_prior import SpeedPrior
from gateway.core.experience import Experience
from gateway.core.prefix.trust import PrefixTrust
from gateway.sim import experiment
from gateway.sim.experiment import Contender, play, traffic
from gateway.sim.summary import Summary
from gateway.sim.trace_file import read_trace
from gateway.sim.truth import Truth

__all__ = ["ABLATIONS", "measure"]

FLEET = {"spark0": "dgx-spark", "spark1": "dgx-spark", "pro": "rtx-pro-6000"}
FLEET |= {f"rtx{number}": "rtx-3090" for number in range(4)}
WEIGHTS = {"dgx-spark": "fp8", "rtx-pro-6000": "fp8", "rtx-3090": "q4_k_m"}
MODEL = "Qwen3-30B-A3B"


def _yaml(wait: str = "15s", harm: float = 0.35) -> str:
    """A client gives up waiting after `wait`."""
    lines = [
        f"  - {{name: {name}, url: 'http://{name}.test', engine: vllm, device: {device},"
        f" models: [{{id: {MODEL}, weights: {WEIGHTS[device]}, context: 40960}}]}}"
        for name, device in FLEET.items()
    ]
    more = f"queue: {{wait: {wait}, length: 100000}}\nrouting: {{harm: {harm}}}\n"
    return "\n".join(["backends:", *lines, more])


@contextmanager
def _blind() -> Iterator[None]:
    """The gateway takes all devices to be alike, with the mean of their constants; it may still learn."""
    real, make = offers.speed_prior, experiment.emulated
    found: list[SpeedPrior] = []

    def noted(*args: Any, **more: Any) -> SpeedPrior:
        found.append(real(*args, **more))
        return found[-1]

    with patch.object(offers, "speed_prior", noted):
        make(load(_yaml()).policy)
    mean = SpeedPrior(
        _mean(PrefillSpeed, [one.prefill for one in found]), _mean(DecodeSpeed, [one.decode for one in found])
    )

    def unpatched(*args: Any, **more: Any) -> Any:
        with patch.object(offers, "speed_prior", real):
            return make(*args, **more)

    with patch.object(offers, "speed_prior", lambda *_, **__: mean), patch.object(experiment, "emulated", unpatched):
        yield


def _mean(kind: Any, found: list[Any]) -> Any:
    return kind(**{name: fmean(getattr(one, name) for one in found) for name in kind.__slots__})


@contextmanager
def _patched(*what: tuple[object, str, object]) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name, instead in what:
            stack.enter_context(patch.object(owner, name, instead))
        yield


ABLATIONS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "whole": nullcontext,
    "without late binding": nullcontext,
    "without device constants": _blind,
    "without learned factors": lambda: _patched((Experience, "factors", lambda *_: (1.0, 1.0))),
    "without interference": lambda: _patched((weighing, "_RHO_CAP", 0.0)),
    "without prefix trust": lambda: _patched((PrefixTrust, "share", lambda *_: 1.0)),
    "without prefixes": lambda: _patched((Experience, "hits", lambda *_: {})),
    "without shedding": nullcontext,
    "without harm": nullcontext,
    "without the crowd": lambda: _patched((choosing, "_BEHIND", 0.0), (pump, "_with_one_more", lambda snap, _: snap)),
    "without waiting": lambda: _patched((choosing, "_patience", lambda *_: -math.inf)),
}
"""Parts by name, and what takes them away."""
SAID = {"without shedding": {"wait": "24h"}, "without harm": {"harm": 0.0}}
KINDS = {"without late binding": "bound-on-arrival"}


def measure(name: str, path: Path, rate: float, seed: int, requests: int) -> Summary:
    """One run of one ablation."""
    contender = Contender(name, load(_yaml(**SAID.get(name, {}))).policy, KINDS.get(name, ""))
    given = traffic(read_trace(path), [contender], seed=seed, skip=seed - 1, requests=requests, rate=rate)
    with ABLATIONS[name]():
        return play(contender, given, truth=Truth(noise=0.2)).summary


def _job(job: tuple[str, Path, float, int, int]) -> Summary:
    return replace(measure(*job), backends={})


def main() -> None:
    """Measure and print a Markdown table for each trace."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.ablations", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("trace", nargs="+", metavar="TRACE:RATE")
    parser.add_argument("--only", action="append", choices=list(ABLATIONS), help="beside the whole")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=320)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    names = ["whole", *(given.only or [name for name in ABLATIONS if name != "whole"])]
    with ProcessPoolExecutor(given.jobs) as pool:
        for text in given.trace:
            path, _, rate = text.rpartition(":")
            jobs = [
                (name, Path(path), float(rate), seed, given.requests)
                for name in names
                for seed in range(1, given.seeds + 1)
            ]
            found = dict(zip([job[::3] for job in jobs], pool.map(_job, jobs), strict=True))
            print(f"\n{Path(path).name}, {rate} requests/s, {given.seeds} seeds of {given.requests}\n")
            _print({name: [found[name, seed] for seed in range(1, given.seeds + 1)] for name in names})


def _print(rows: dict[str, list[Summary]]) -> None:
    print("| | good % | difference | TTFT p90 s | TPOT p90 ms | E2E p50 s | of ideal | refused | preempted |")
    print("|---|---|---|---|---|---|---|---|---|")
    whole = rows["whole"]
    for name, each in rows.items():
        gaps = [100 * (one.goodput - other.goodput) for one, other in zip(each, whole, strict=True)]
        error = f" ± {stdev(gaps) / math.sqrt(len(gaps)):.1f}" if len(gaps) > 1 else ""
        cells = [
            f"{100 * fmean(one.goodput for one in each):.1f}",
            "" if name == "whole" else f"{fmean(gaps):+.1f}{error}",
            f"{fmean(one.ttft_s[1] for one in each):.1f}",
            f"{1000 * fmean(one.tpot_s[1] for one in each):.0f}",
            f"{fmean(one.e2e_s[0] for one in each):.1f}",
            f"{fmean(one.prefilled for one in each):.2f}",
            str(sum(sum(one.refused.values()) for one in each)),
            str(sum(one.preemptions for one in each)),
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
