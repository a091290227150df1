"""`kvgate simulate --json`: the same figures for scripts. Seconds, tokens, shares of 1; null for what is not known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gateway.cli.simulate_view import Setting, contenders_of
from gateway.sim.comparison import differences
from gateway.sim.experiment import Played

__all__ = ["as_json"]


def as_json(setting: Setting, runs: Sequence[Played]) -> dict[str, Any]:
    """Everything that was found, as one object."""
    names = contenders_of(runs)
    return {
        "trace": setting.trace.name,
        "goal": asdict(setting.goal),
        "noise": setting.truth.noise,
        "factors": dict(setting.truth.factors),
        "faults": [
            {"at_s": each.at_s, "backend": each.engine, "slow": each.slowdown.decode, "hang": each.hang,
             "crash": each.crash}
            for each in setting.faults
        ],
        "traffic": [
            {"seed": one.seed, "requests": len(one.arrivals), "rate": one.rate, "left_out": one.left_out,
             "ideal_prefill_tokens": one.ideal}
            for one in setting.traffic
        ],
        "runs": [{"contender": run.contender, "seed": run.seed, **_known(asdict(run.summary))} for run in runs],
        "differences": [
            {"first": names[0], "second": name, "figure": gap.figure.name, "mean": gap.mean,
             "error": _number(gap.error), "better": gap.better, "seeds": gap.seeds}
            for name in names[1:]
            for gap in differences(runs, names[0], name)
        ],
    }  # fmt: skip


def _known(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _known(each) for name, each in found.items()}
    if isinstance(found, list | tuple):
        return [_known(each) for each in found]
    return _number(found) if isinstance(found, float) else found


def _number(found: float) -> float | None:
    return found if math.isfinite(found) else None
