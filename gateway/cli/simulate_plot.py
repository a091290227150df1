"""Simulated runs as a picture: how many good answers, how long people waited, how it went over time, and where."""

from __future__ import annotations

import html
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.cli.simulate_view import Setting, contenders_of
from gateway.errors import ConfigError
from gateway.sim.experiment import Played
from gateway.sim.outcome import Outcome
from gateway.sim.summary import Goal, mean

__all__ = ["FORMATS", "draw"]

FORMATS = (".html", ".svg", ".png")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe and Ito's, which the colour-blind tell apart too."""
_WINDOWS = 24
"""Points of a line over time."""
_STYLE: dict[Any, Any] = {
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25, "font.size": 10,
    "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left", "svg.hashsalt": "kvgate",
    "axes.edgecolor": "#888888", "svg.fonttype": "none", "font.family": ["DejaVu Sans", "sans-serif"],
}  # fmt: skip
_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>body{{margin:2rem auto;max-width:76rem;font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff}}
h1{{font-size:1.3rem;font-weight:600;margin:0 1rem}} p{{margin:.2rem 1rem 1rem;color:#666}}
svg{{width:100%;height:auto}}</style></head>
<body><h1>{title}</h1><p>{about}</p>
{picture}
</body></html>
"""


def draw(path: Path, setting: Setting, runs: Sequence[Played]) -> None:
    """Write the picture; the same runs give the same bytes. Raises ConfigError where it can't be drawn or written."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise ConfigError("--plot needs matplotlib: pip install 'kvgate[plot]'") from None
    kind = "png" if path.suffix == ".png" else "svg"
    unsaid = {"Software": None} if kind == "png" else {"Date": None}
    into = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        _figure(setting, runs).savefig(into, format=kind, dpi=144, metadata=unsaid)
    drawn = into.getvalue()
    if path.suffix == ".html":
        drawn = _page(setting, runs, drawn.decode()).encode()
    try:
        path.write_bytes(drawn)
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror}") from None


def _page(setting: Setting, runs: Sequence[Played], picture: str) -> str:
    goal = setting.goal
    title = f"kvgate simulate: {', '.join(contenders_of(runs))}"
    about = (
        f"{sum(len(one.arrivals) for one in setting.traffic):,} requests of {setting.trace.name}. Good: whole, first "
        f"token within {goal.ttft_s:g} s and a second for every {goal.prompt_rate:,.0f} tokens of prompt, "
        f"{goal.tpot_s * 1000:g} ms a token at most."
    )
    picture = picture[picture.index("<svg") :]
    return _PAGE.format(title=html.escape(title), about=html.escape(about), picture=picture)


def _figure(setting: Setting, runs: Sequence[Played]) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    figure = Figure(figsize=(13, 7.6), layout="constrained")
    (good, first, pace), (time, where, work) = figure.subplots(2, 3)
    names = contenders_of(runs)
    colours = {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(names)}
    _bars(good, runs, colours, [100 * run.summary.goodput for run in runs], "good answers, % of all")
    _curve(first, runs, colours, [[one.ttft_s for one in run.outcomes] for run in runs], "time to first token, s")
    tpots = [[None if one.tpot_s is None else 1000 * one.tpot_s for one in run.outcomes] for run in runs]
    _curve(pace, runs, colours, tpots, "time per output token, ms")
    pace.axvline(1000 * setting.goal.tpot_s, color="#444444", linestyle=":", linewidth=1)
    _over_time(time, setting, runs, colours)
    _places(where, runs, names)
    ideal = [100 * run.summary.prefilled for run in runs]
    _bars(work, runs, colours, ideal, "prompt tokens computed, % of the ideal")
    work.axvline(100, color="#444444", linestyle=":", linewidth=1)
    handles = [Patch(color=colours[name], label=name) for name in names]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(7, len(names)), frameon=False)
    return figure


def _bars(axes: Any, runs: Sequence[Played], colours: dict[str, str], values: Sequence[float], title: str) -> None:
    """A bar for each contender, a dot for each seed."""
    axes.set_title(title)
    for row, (name, colour) in enumerate(colours.items()):
        own = [value for run, value in zip(runs, values, strict=True) if run.contender == name]
        axes.barh(row, mean(own), color=colour, height=0.62, alpha=0.85)
        if len(own) > 1:
            axes.plot(own, [row] * len(own), "o", color="#222222", markersize=3.5)
        axes.annotate(f" {mean(own):.1f}", (max(own), row), va="center", fontsize=9, xytext=(4, 0),
                      textcoords="offset points")  # fmt: skip
    axes.set_yticks(range(len(colours)), list(colours))
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.grid(visible=False, axis="y")


def _curve(
    axes: Any, runs: Sequence[Played], colours: dict[str, str], values: Sequence[Sequence[float | None]], title: str
) -> None:
    """The share of all requests that got theirs within so long; what was never answered keeps a curve below 100 %."""
    axes.set_title(title)
    for name, colour in colours.items():
        own = [found for run, found in zip(runs, values, strict=True) if run.contender == name]
        count = sum(map(len, own))
        known = sorted(value for found in own for value in found if value is not None)
        shares = [100.0 * (number + 1) / count for number in range(len(known))]
        axes.step(known, shares, where="post", color=colour, linewidth=1.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda number, _: f"{number:g}")
    axes.set_ylim(0, 102)
    axes.set_ylabel("% of requests within")


def _over_time(axes: Any, setting: Setting, runs: Sequence[Played], colours: dict[str, str]) -> None:
    axes.set_title("good answers over time of arrival, %")
    end = max((one.arrivals[-1].at_s for one in setting.traffic), default=1.0) or 1.0
    for name, colour in colours.items():
        hits: list[list[bool]] = [[] for _ in range(_WINDOWS)]
        for run in runs:
            if run.contender == name:
                for outcome in run.outcomes:
                    hits[min(_WINDOWS - 1, int(outcome.arrived_at / end * _WINDOWS))].append(
                        _good(outcome, setting.goal)
                    )
        at = [(number + 0.5) * end / _WINDOWS for number, found in enumerate(hits) if found]
        axes.plot(at, [100.0 * sum(found) / len(found) for found in hits if found], color=colour, linewidth=1.8)
    for fault in setting.faults:
        axes.axvline(fault.at_s, color="#444444", linestyle=":", linewidth=1)
        axes.annotate(f" {fault.engine}", (fault.at_s, 2), fontsize=8, color="#444444")
    axes.set_ylim(0, 102)
    axes.set_xlabel("seconds")


def _places(axes: Any, runs: Sequence[Played], names: Sequence[str]) -> None:
    axes.set_title("where answers came from, %")
    places = list(dict.fromkeys(place for run in runs for place in run.summary.backends))
    left = [0.0] * len(names)
    for number, place in enumerate(places):
        shares = []
        for name in names:
            own = [r.summary.backends[place].share for r in runs if r.contender == name and place in r.summary.backends]
            found = mean(own)
            shares.append(0.0 if math.isnan(found) else 100.0 * found)
        shade = str(0.30 + 0.55 * number / max(1, len(places) - 1))
        axes.barh(range(len(names)), shares, left=left, height=0.62, color=shade, edgecolor="white")
        for row, (part, start) in enumerate(zip(shares, left, strict=True)):
            if part >= 8:
                dark = float(shade) < 0.6
                axes.text(start + part / 2, row, place, ha="center", va="center", fontsize=8,
                          color="white" if dark else "#222222", clip_on=True)  # fmt: skip
        left = [before + part for before, part in zip(left, shares, strict=True)]
    axes.set_yticks(range(len(names)), list(names))
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.grid(visible=False)


def _good(outcome: Outcome, goal: Goal) -> bool:
    return outcome.good(goal.ttft_s, goal.prompt_rate, goal.tpot_s)
