"""`kvgate top` on a screen: the fleet, its queue, and who waits for what, in as much room as there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gateway.cli.top_backends import backend_remarks, backends_table
from gateway.cli.top_queue import clients_table, models_table, waiting_table
from gateway.cli.top_rates import Rates
from gateway.cli.top_words import compact, plain
from gateway.telemetry.parting import parting_words

__all__ = ["Frame", "View"]

_SIDE_BY_SIDE = 110
"""Columns from which models and keys stand beside each other."""
_LEAST_WAITING = 1
_PLAIN_HEIGHT = 60
"""Lines of a frame where there is no screen to fit in."""

_LEGEND = Text.assemble(
    ("Backends", "bold"), ("  KV cache: ", "dim"), ("█", "cyan"), (" reserved  ", "dim"), ("▓", "magenta"),
    (" by others  ", "dim"), ("░", "green"), (" free  · kept free", "dim"), no_wrap=True, overflow="ellipsis",
)  # fmt: skip

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Frame:
    """What was polled last. `problem`: why the poll after it failed; `at`: the time of day, for a person."""

    url: str
    at: str
    backends: Sequence[_Row] = ()
    queue: _Row = field(default_factory=dict)
    rates: Rates = field(default_factory=Rates)
    problem: str | None = None
    known: bool = True
    """Whether anything was ever polled."""


class View:
    """One frame. Fills the height that it is given with waiting requests, and says how many it leaves out."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """All of it."""
        width = options.max_width
        fixed = Group(*self._fixed(width))
        yield fixed
        waiting = self._frame.queue.get("requests") or ()
        if not self._frame.known or not waiting:
            return
        height = options.height or _PLAIN_HEIGHT
        used = len(console.render_lines(fixed, options.update(height=None), pad=False))
        room = max(_LEAST_WAITING, height - used - 4)  # a blank line, the title, the heads, and what is left out
        yield Text()
        yield _title("Waiting", "the next to be served first")
        yield waiting_table(waiting[:room], width)
        left_out = len(waiting) - room + int(self._frame.queue.get("requests_left_out") or 0)
        if left_out > 0:
            yield Text(f"  and {left_out:,} more", "dim")

    def _fixed(self, width: int) -> Iterator[RenderableType]:
        frame = self._frame
        yield Rule(
            Text.assemble(("kvgate top", "bold cyan"), (f"  {plain(frame.url)}  {frame.at}", "dim")),
            align="left", style="cyan",
        )  # fmt: skip
        if frame.problem is not None:
            yield Text.assemble(("✗ ", "bold red"), (f"{plain(frame.problem)}; trying again", "red"))
        if not frame.known:
            return
        yield _totals(frame)
        yield Text()
        yield _LEGEND
        if frame.backends:
            yield backends_table(frame.backends, frame.rates, width)
            yield from (remark for row in frame.backends for remark in backend_remarks(row))
        else:
            yield Text("  No backends are configured.", "dim")
        yield Text()
        yield from self._queue(width)

    def _queue(self, width: int) -> Iterator[RenderableType]:
        models, clients = self._frame.queue.get("models") or {}, self._frame.queue.get("clients") or ()
        queue: list[RenderableType] = [_title("Queue", "by model")]
        queue.append(models_table(models) if models else Text("  Nothing waits.", "dim"))
        keys: list[RenderableType] = [_title("Keys", "share of device seconds since the start")]
        keys.append(clients_table(clients))
        if not clients:
            yield Group(*queue)
        elif width >= _SIDE_BY_SIDE:
            grid = Table.grid(expand=True, padding=(0, 4, 0, 0))
            grid.add_column(ratio=1)
            grid.add_column(ratio=1)
            grid.add_row(Group(*queue), Group(*keys))
            yield grid
        else:
            yield from (*queue, Text(), *keys)
        yield from self._hints()

    def _hints(self) -> Iterator[RenderableType]:
        """What somebody could mend."""
        for row in self._frame.queue.get("diverging") or ():
            who = f"  ! {plain(row.get('client', '?'))} on {plain(row.get('model', '?'))}: "
            yield Text.assemble((who, "yellow"), parting_words(row))


def _title(title: str, about: str) -> Text:
    return Text.assemble((title, "bold"), (f"  {about}", "dim"), no_wrap=True, overflow="ellipsis")


def _totals(frame: Frame) -> Text:
    rows, rate = frame.backends, frame.rates.total
    working = sum(row.get("health") in ("up", "trial") for row in rows)
    pool = sum(row.get("kv_pool_tokens") or 0 for row in rows)
    taken = sum((row.get("kv_reserved_tokens") or 0) + (row.get("kv_foreign_tokens") or 0) for row in rows)
    waiting = int(frame.queue.get("waiting") or 0)
    line = Text()
    line.append(f"{working}", "bold" if working == len(rows) else "bold red")
    line.append(f" of {len(rows)} backends work   ")
    line.append(f"{sum(row.get('running') or 0 for row in rows):,}", "bold").append(" running   ")
    line.append(f"{waiting:,}", "bold yellow" if waiting else "bold").append(" waiting")
    if pool:
        line.append("   KV ").append(f"{100 * taken / pool:.0f} %", "bold")
    if rate.decode is not None:
        line.append("   ").append(compact(rate.prefill), "bold").append(" tok/s in, ")
        line.append(compact(rate.decode), "bold").append(" out")
    return line
