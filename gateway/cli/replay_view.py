"""What a replay found, for a person and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.check_problems import counted, indented
from gateway.replay.report import Divergence, Report
from gateway.telemetry.figures import seconds

__all__ = ["as_json", "show"]

_FIELDS = 12
"""Fields that are listed."""


def as_json(report: Report) -> dict[str, Any]:
    """Everything, in JSON's types."""
    return {
        "looks": report.looks,
        "decisions": report.decisions,
        "final": report.final,
        "by_the_queue_itself": report.own,
        "lines_not_used": report.unused,
        "seconds": report.seconds,
        "diverging": report.diverging,
        "decided_differently": report.chosen,
        "fields": dict(report.fields.most_common()),
        "moves": [
            {"recorded": one, "replayed": other, "decisions": count}
            for (one, other), count in report.moves.most_common()
        ],
        "backends_of_one_policy_only": sorted(report.unknown),
        "first": [
            {
                "look": each.look,
                "where": each.where,
                "now": each.now,
                "request": each.request,
                "fields": [field._asdict() for field in each.fields],
            }
            for each in report.first
        ],
    }


def show(console: Console, report: Report, file: Path, other: Path | None) -> None:
    """The outcome in a line, then what differs."""
    console.print(_outcome(report, file, other))
    for line in _left_out(report, other):
        console.print(indented(Text(line, "dim"), 2))
    if report.moves:
        console.print(Text("\nDecided differently", "bold"))
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
        table.add_column(justify="right")
        for (one, now), count in report.moves.most_common(_FIELDS):
            table.add_row(f"{count:,}", one, "→", now)
        console.print(table)
    if other is None and report.fields:
        console.print(Text("\nFields that differ", "bold"))
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
        table.add_column(justify="right")
        for name, count in report.fields.most_common(_FIELDS):
            table.add_row(f"{count:,}", name)
        console.print(table)
    if report.first:
        console.print(Text("\nThe first", "bold"))
        for each in report.first:
            _show_one(console, each, report.began or 0.0)


def _outcome(report: Report, file: Path, other: Path | None) -> Text:
    of = f"{counted(report.decisions, 'decision')} of {seconds(report.seconds)}"
    if other is not None:
        share = report.chosen / report.decisions if report.decisions else 0.0
        return Text(f"{other} decides {report.chosen:,} of {of} in {file} differently ({share:.1%})", "bold")
    if report.diverging:
        return Text(f"{report.diverging:,} of {of} in {file} come out differently", "bold red")
    return Text(f"{of} in {file}: all the same, bit for bit", "bold green")


def _left_out(report: Report, other: Path | None) -> list[str]:
    said = []
    if report.own:
        said.append(f"{counted(report.own, 'refusal')} by the queue itself (full, or a client's limit) not among them")
    if report.unused:
        said.append(f"{counted(report.unused, 'line')} not used: lines before them are missing")
    if other is not None:
        if report.unknown:
            said.append(f"left out, since only one of the two has them: {', '.join(sorted(report.unknown))}")
        said.append("each by itself, on what backends held in the recording; `kvgate simulate` plays what would follow")
    return said


def _show_one(console: Console, each: Divergence, began: float) -> None:
    console.print(f"  {each.request} after {seconds(each.now - began)}, look {each.look}, {each.where}")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 4))
    for field in each.fields[:_FIELDS]:
        table.add_row(field.field, Text(_value(field.recorded)), "→", Text(_value(field.replayed)))
    console.print(table)
    if len(each.fields) > _FIELDS:
        console.print(Text(f"    and {counted(len(each.fields) - _FIELDS, 'more field')}", "dim"))


def _value(value: object) -> str:
    return "nothing" if value is None else repr(value) if isinstance(value, float) else str(value)
