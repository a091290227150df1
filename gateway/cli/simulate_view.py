"""A simulated run, or several, for a person: how good, where it went, what was predicted, and who did better."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.check_problems import counted, indented
from gateway.cli.fitted_table import empty_table, fitted
from gateway.sim.comparison import Difference, Figure, differences
from gateway.sim.events import Breakdown
from gateway.sim.experiment import Played, Traffic
from gateway.sim.summary import Calibration, Goal, Summary, mean
from gateway.sim.truth import Truth

__all__ = ["Setting", "contenders_of", "show"]

_REFUSALS = 6
"""Reasons that are shown for each contender."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What was played: the trace, what counts as good, the devices' spread, the requests of each seed, and faults."""

    trace: Path
    goal: Goal
    truth: Truth
    traffic: Sequence[Traffic]
    faults: Sequence[Breakdown] = ()


def contenders_of(runs: Iterable[Played]) -> list[str]:
    """Names in the order in which they played."""
    return list(dict.fromkeys(run.contender for run in runs))


def show(console: Console, setting: Setting, runs: Sequence[Played]) -> None:
    """Everything, in tables; means over the seeds where there are several."""
    names = contenders_of(runs)
    of = {name: [run.summary for run in runs if run.contender == name] for name in names}
    console.print(Text("Traffic", "bold"))
    console.print(indented(Text(_traffic(setting)), 2))
    console.print()
    _section(console, "Answers", _good(setting.goal), lambda narrow: _answers(of, narrow=narrow))
    if any(any(one.refused or one.left for one in each) for each in of.values()):
        _section(console, "Not answered", "by reason", lambda _: _refused(of))
    if len(names) == 1:
        _section(console, "Backends", "", lambda narrow: _backends(of[names[0]], narrow=narrow))
    else:
        _section(console, "Backends", "share of the answers, time at work", lambda narrow: _shares(of, narrow=narrow))
    if any(one.ttft or one.tpot for each in of.values() for one in each):
        about = "observed over predicted, of what was sent"
        _section(console, "Calibration", about, lambda _: _calibration(of))
    gaps = {name: differences(runs, names[0], name) for name in names[1:]}
    if len(gaps) == 1:
        (other,) = gaps
        about = f"{other} less {names[0]}, on the same requests"
        _section(console, "Difference", about, lambda _: _differences(gaps[other]))
    elif gaps:
        _section(console, f"Less {names[0]}", "on the same requests", lambda narrow: _against(gaps, narrow=narrow))
    if gaps and len(setting.traffic) < 3:
        console.print(indented(Text("fewer than three seeds tell nothing of the noise: --seeds 5", "dim"), 2))


def _section(console: Console, title: str, about: str, build: Callable[[bool], Table]) -> None:
    console.print(Text.assemble((title, "bold"), ("  " + about if about else "", "dim")))
    console.print(indented(fitted(console, build), 2))
    console.print()


def _traffic(setting: Setting) -> str:
    given = setting.traffic
    requests = sum(len(one.arrivals) for one in given)
    prompts = [each.request.prompt_tokens for one in given for each in one.arrivals]
    outputs = [each.request.output_tokens for one in given for each in one.arrivals]
    shared = 1.0 - sum(one.ideal for one in given) / sum(prompts)
    parts = [
        f"{requests:,} requests of {setting.trace.name}",
        f"{sum(one.rate for one in given) / len(given):.3g}/s",
        f"prompts of {sum(prompts) / requests:,.0f} tokens, {shared:.0%} of them seen before",
        f"answers of {sum(outputs) / requests:,.0f}",
    ]
    if len(given) > 1:
        parts.append(f"{len(given)} seeds from {given[0].seed} on")
    left_out = sum(one.left_out for one in given)
    if left_out:
        parts.append(f"{counted(left_out, 'request')} too long for the fleet left out")
    if setting.truth.noise:
        parts.append(f"devices {setting.truth.noise:.0%} off the catalogue")
    parts += [f"{fault.engine} {_fault(fault)} at {fault.at_s:g} s" for fault in setting.faults]
    return "; ".join(parts)


def _fault(fault: Breakdown) -> str:
    if fault.crash:
        return "dies" if fault.hang else "crashes"
    if fault.hang:
        return "hangs"
    return f"{fault.slowdown.decode:g} times slower" if fault.slowdown.decode > 1.0 else "is well again"


def _good(goal: Goal) -> str:
    return f"good: first token in {goal.ttft_s:g} s + prompt/{goal.prompt_rate:g}, {goal.tpot_s * 1000:g} ms a token"


def _answers(of: dict[str, list[Summary]], *, narrow: bool) -> Table:
    heads = ["good", "TTFT p50", "p90", "p99", "TPOT p50", "p90", "E2E p50", "p90", "of ideal", "preempted", "tok/s"]
    if narrow:
        heads = [
            "good\n%",
            "TTFT\np50",
            "s\np90",
            "\np99",
            "TPOT\np50",
            "ms\np90",
            "of\nideal",
            "pre-\nempt",
            "tok\n/s",
        ]
    table = empty_table(("", ""), *((head, "right") for head in heads))
    best = max(mean(one.goodput for one in each) for each in of.values())
    for name, each in of.items():
        good = mean(one.goodput for one in each)
        first, pace, whole = ([mean(one[at] for one in found) for at in range(3)] for found in _times(each))
        row = [share(good), *map(seconds, first), *map(milliseconds, pace[:2]), *map(seconds, whole[:2])]
        row += [f"{mean(one.prefilled for one in each):.2f}"]
        if narrow:
            row = [cell.split(" ")[0] for cell in row[:6]] + row[8:]
        table.add_row(
            Text(name, "bold"), Text(row[0], "green" if good == best and len(of) > 1 else ""), *row[1:],
            f"{sum(one.preemptions for one in each):,}", f"{mean(one.tokens_per_s for one in each):,.0f}",
        )  # fmt: skip
    return table


def _times(each: Sequence[Summary]) -> tuple[list[tuple[float, float, float]], ...]:
    return [one.ttft_s for one in each], [one.tpot_s for one in each], [one.e2e_s for one in each]


def _shares(of: dict[str, list[Summary]], *, narrow: bool) -> Table:
    """A row for each backend of any file, a column for each contender."""
    table = empty_table(("", ""), *((name.replace("-", "\n") if narrow else name, "right") for name in of))
    for place in dict.fromkeys(place for each in of.values() for one in each for place in one.backends):
        cells = []
        for each in of.values():
            own = [one.backends[place] for one in each if place in one.backends]
            part, busy = mean(one.share for one in own), mean(one.busy for one in own)
            cells.append(f"{100 * part:.0f} %, {100 * busy:.0f} %" if own else "–")
        table.add_row(Text(place, "bold"), *cells)
    return table


def _against(gaps: dict[str, list[Difference]], *, narrow: bool) -> Table:
    """A row for each contender, a column for each figure."""
    figures = [gap.figure for gap in next(iter(gaps.values()))]
    shown = [figure for figure in figures if not narrow or figure.name in ("good answers", "TTFT p90", "E2E p50")]
    heads = ((figure.name.replace(" ", "\n", 1) if narrow else figure.name, "right") for figure in shown)
    table = empty_table(("", ""), *heads)
    for name, found in gaps.items():
        cells = {gap.figure.name: _gap(gap) for gap in found}
        table.add_row(Text(name, "bold"), *(cells.get(figure.name, Text("–")) for figure in shown))
    return table


def _gap(gap: Difference) -> Text:
    better = (gap.mean > 0.0) == gap.figure.more_is_better
    colour = ("green" if better else "red") if gap.clear else ""
    error = "" if math.isnan(gap.error) else f" ± {value(gap.error, gap.figure, points=True)}"
    sign = "+" if gap.mean > 0 else "−" if gap.mean < 0 else ""
    return Text(f"{sign}{value(abs(gap.mean), gap.figure, points=True)}{error}", colour)


def _refused(of: dict[str, list[Summary]]) -> Table:
    table = empty_table(("", ""), ("requests", "right"), ("of all", "right"), ("reason", ""))
    for name, each in of.items():
        total = sum(one.requests for one in each)
        counts: dict[str, int] = {}
        for one in each:
            for reason, count in one.refused.items():
                counts[reason] = counts.get(reason, 0) + count
            if one.left:
                counts["the client left"] = counts.get("the client left", 0) + one.left
        for at, (reason, count) in enumerate(sorted(counts.items(), key=lambda found: -found[1])[:_REFUSALS]):
            words = reason.replace("_", " ")
            table.add_row(Text(name if at == 0 else "", "bold"), f"{count:,}", share(count / total), words)
    return table


def _backends(each: Sequence[Summary], *, narrow: bool) -> Table:
    columns = [("", ""), ("answers", "right"), ("share", "right"), ("busy", "right")]
    columns += [("prompt tokens\nprefilled" if narrow else "prompt tokens prefilled", "right")]
    columns += [("answer tokens", "right"), ("", "")]
    table = empty_table(*columns)
    for name in each[0].backends:
        own = [one.backends[name] for one in each]
        part = mean(one.share for one in own)
        table.add_row(
            Text(name, "bold"), f"{sum(one.requests for one in own):,}", share(part),
            share(mean(one.busy for one in own)), f"{sum(one.prefilled_tokens for one in own):,}",
            f"{sum(one.output_tokens for one in own):,}", Text("█" * round(20 * part) if part > 0 else "", "cyan"),
        )  # fmt: skip
    return table


def _calibration(of: dict[str, list[Summary]]) -> Table:
    table = empty_table(
        ("", ""), ("of", ""), ("predictions", "right"), ("median error", "right"), ("second half", "right"),
        ("median ratio", "right"),
    )  # fmt: skip
    for name, each in of.items():
        shown: dict[str, list[Calibration | None]] = {"TTFT": [one.ttft for one in each]}
        shown["TPOT"] = [one.tpot for one in each]
        for at, (what, found) in enumerate(shown.items()):
            known = [one for one in found if one is not None]
            if known:
                table.add_row(
                    Text("" if at else name, "bold"), what, f"{sum(one.samples for one in known):,}",
                    share(mean(one.error for one in known)), share(mean(one.late for one in known)),
                    f"{mean(one.bias for one in known):.2f}",
                )  # fmt: skip
    return table


def _differences(gaps: Sequence[Difference]) -> Table:
    table = empty_table(
        ("", ""), ("first", "right"), ("second", "right"), ("difference", "right"), ("better in", "right")
    )
    for gap in gaps:
        first, second = value(gap.first, gap.figure), value(gap.second, gap.figure)
        table.add_row(Text(gap.figure.name, "bold"), first, second, _gap(gap), f"{gap.better} of {gap.seeds}")
    return table


def value(number: float, figure: Figure, *, points: bool = False) -> str:
    """A figure in its unit; differences of shares are points."""
    if figure.unit == "%":
        return f"{number * 100:.1f}" if points else share(number)
    return milliseconds(number) if figure.unit == "ms" else seconds(number)


def seconds(number: float) -> str:
    """Seconds with three digits or so."""
    if math.isnan(number):
        return "–"
    return f"{number:.2f} s" if number < 10 else f"{number:.1f} s" if number < 100 else f"{number:,.0f} s"


def milliseconds(number: float) -> str:
    """Milliseconds of seconds."""
    return "–" if math.isnan(number) else f"{number * 1000:.1f} ms" if number < 0.01 else f"{number * 1000:,.0f} ms"


def share(number: float) -> str:
    """A share of 1 in hundredths."""
    return "–" if math.isnan(number) else f"{number * 100:.1f} %"
