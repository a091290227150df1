"""The backends as one decision weighed them: a line each, then what the priced ones cost, term by term in seconds."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from gateway.core.boundary import Label
from gateway.core.reasons import SENTENCES, Reason
from gateway.telemetry.figures import count, seconds

__all__ = ["Costs", "candidate_lines", "sentence"]

_Row = Mapping[str, Any]

_HEADING_WIDTH = 12
"""Characters of a backend's name in a line of a column's head; longer ones go on below, after a hyphen if they can."""
_GAPS = (2, 1)
"""Spaces between columns: the first with which all backends stand side by side, else the first."""

_DETAILS = {
    Reason.WINDOW_TOO_SMALL: "needs {needed} tokens, window {limit}",
    Reason.POOL_TOO_SMALL: "needs {needed} tokens, pool {limit}",
    Reason.KV_FULL: "needs {needed} tokens, {limit} free",
    Reason.CLASS_CEILING: "needs {needed} tokens, {limit} free",
    Reason.SLOTS_FULL: "at most {limit}, this would make {needed}",
    Reason.TPOT_LIMIT: "at most {limit}, this would make {needed}",
    Reason.LEARNED_LIMIT: "at most {limit}, this would make {needed}",
    Reason.DECODE_PACE: "{needed} s of prefill within 20 s, {limit} s keep the pace",
    Reason.MISSING_ABILITY: "has {limit} of {needed}",
}


def sentence(reason: object) -> str:
    """A reason in words; one of a newer version as it is."""
    try:
        return SENTENCES[Reason(str(reason))]
    except (ValueError, KeyError):
        return str(reason).replace("_", " ")


def candidate_lines(decision: _Row) -> Table:
    """One line a candidate, the chosen one first, then by seconds, then those that fell out.

    A tick is an open backend, dots a working one that is full, a cross one that can't serve the request.
    """
    candidates: Sequence[_Row] = decision.get("candidates", ())
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", max_width=24)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    tiers = list(dict.fromkeys((candidate.get("tier", 0), candidate.get("model", "")) for candidate in candidates))
    for tier, model in tiers:
        if len({number for number, _ in tiers}) > 1:
            table.add_row("", Text(str(model), "bold"), "", Text(f"fallback {tier}" if tier else "asked for", "dim"))
        ours = [one for one in candidates if (one.get("tier", 0), one.get("model", "")) == (tier, model)]
        for candidate in sorted(ours, key=lambda one: _rank(one, decision)):
            mark, style = _mark(candidate, decision)
            table.add_row(
                Text(mark, style),
                Text(str(candidate["backend"]), "bold green" if style == "bold green" else ""),
                Text(seconds(candidate.get("total")), style),
                Text(_words(candidate, decision), "" if candidate.get("total") is not None else "dim"),
            )
    return table


def _rank(candidate: _Row, decision: _Row) -> tuple[bool, bool, bool, float]:
    total = candidate.get("total")
    return (not is_chosen(candidate, decision), total is None, candidate.get("reason") is not None, total or 0.0)


def is_chosen(candidate: _Row, decision: _Row) -> bool:
    """Whether the decision is for this candidate."""
    return (
        candidate.get("total") is not None
        and candidate["backend"] == decision.get("backend")
        and candidate.get("tier", 0) == decision.get("tier", 0)
    )


def _mark(candidate: _Row, decision: _Row) -> tuple[str, str]:
    if is_chosen(candidate, decision):
        return "▶", "bold green"
    if candidate.get("reason") is None:
        return "✓", "green"
    return ("…", "yellow") if candidate.get("total") is not None else ("✗", "red")


def _words(candidate: _Row, decision: _Row) -> str:
    if is_chosen(candidate, decision):
        return "chosen"
    reason = candidate.get("reason")
    if reason is not None:
        detail = _detail(candidate)
        return f"{sentence(reason)} ({detail})" if detail else sentence(reason)
    best = next((one for one in decision.get("candidates", ()) if is_chosen(one, decision)), None)
    if best is None:
        return "open"
    more = candidate["total"] - best["total"]
    return f"open, {seconds(more)} more" if more > 0 else "open, about as good"


def _detail(candidate: _Row) -> str:
    reason, needed, limit = candidate["reason"], candidate.get("needed"), candidate.get("limit")
    if needed is None or limit is None:
        return ""
    if reason in (Reason.BREAKER_OPEN, Reason.RESTING):
        return f"in {seconds(needed)}" if needed else "now due"
    if reason == Reason.PREFIX_IN_PREFILL:
        return f"{seconds(needed)} more"
    if reason == Reason.PREFILL_BACKLOG:
        return f"{seconds(needed)} queued, {seconds(limit)} allowed"
    if reason == Reason.OUTSIDE_BOUNDARY:
        return f"data {_label(needed)}, cleared for {_label(limit)}"
    template = _DETAILS.get(reason, "needs {needed}, limit {limit}")
    return template.format(needed=count(needed), limit=count(limit))


def _label(number: float) -> str:
    try:
        return Label(int(number)).name.lower()
    except ValueError:
        return f"{number:g}"


class Costs:
    """Terms down, priced backends across, as many tables below each other as the width asks for."""

    def __init__(self, decision: _Row) -> None:
        priced = [one for one in decision.get("candidates", ()) if one.get("total") is not None]
        self._priced = sorted(priced, key=lambda one: _rank(one, decision))
        self._chosen = [is_chosen(one, decision) for one in self._priced]
        every = list(dict.fromkeys(name for one in priced for name, _ in one.get("terms", ())))
        self._terms = [name for name in every if any(dict(one.get("terms", ())).get(name) for one in priced)]
        self._free = [name for name in every if name not in self._terms]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = [self._column(one) for one in self._priced]
        if not columns:
            return
        labels = [*map(_spaced, self._terms), "total", "prompt tokens", "of them cached", "KV tokens"]
        heading = max(map(len, labels))
        widths = [max(len(line) for line in (*name, *cells)) for name, cells in columns]
        gap = next((gap for gap in _GAPS if heading + sum(widths) + gap * len(widths) <= options.max_width), _GAPS[0])
        start = 0
        while start < len(columns):
            end, room = start + 1, options.max_width - heading - gap - widths[start]
            while end < len(columns) and room >= gap + widths[end]:
                room -= gap + widths[end]
                end += 1
            if start:
                yield Text("")
            yield self._page(labels, range(start, end), columns, gap)
            start = end
        if self._free:
            yield Text(f"no {', no '.join(map(_spaced, self._free))}", "dim")

    def _column(self, candidate: _Row) -> tuple[list[str], list[str]]:
        """Its name in lines, and its cells."""
        terms, footprint = dict(candidate.get("terms", ())), candidate.get("footprint") or {}
        cells = [seconds(terms.get(name)) for name in self._terms]
        tokens = [count(footprint.get(name)) for name in ("prompt", "cached", "kv")]
        name = textwrap.wrap(str(candidate["backend"]), _HEADING_WIDTH) or ["?"]
        return name, [*cells, seconds(candidate["total"]), *tokens]

    def _page(
        self, labels: Sequence[str], shown: range, columns: Sequence[tuple[list[str], list[str]]], gap: int
    ) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
        table.add_column(no_wrap=True)
        for index in shown:
            style = "green" if self._chosen[index] else ""
            heading = Text("\n".join(columns[index][0]), f"bold {style}")
            table.add_column(heading, justify="right", vertical="bottom", no_wrap=True, style=style)
        for row, label in enumerate(labels):
            table.add_row(label, *(columns[index][1][row] for index in shown), style="bold" if label == "total" else "")
        return table


def _spaced(name: str) -> str:
    return name.replace("_", " ")
