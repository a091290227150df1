"""The queue of `kvgate top`: what waits for each model, whose it is, and why the next ones are not served yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from gateway.cli.top_bars import Bar, Part
from gateway.cli.top_table import Column, table
from gateway.cli.top_words import compact, plain, span, why_text

__all__ = ["clients_table", "models_table", "waiting_table"]

_KEYS = 6
_MODELS = 8
_WIDE = 110
_SOON = 5.0
"""Seconds before its time is up at which a waiting request is marked."""

_Row = Mapping[str, Any]


def models_table(models: Mapping[str, _Row]) -> Table:
    """What waits for each model, the longest line first."""
    figures = (Column(head, right=True) for head in ("waiting", "tokens", "served in", "oldest"))
    made = table(Column("model", widest=28), *figures)
    order = sorted(models.items(), key=lambda item: -int(item[1].get("requests") or 0))
    for name, line in order[:_MODELS]:
        made.add_row(
            Text(plain(name), "bold"),
            f"{line.get('requests', 0):,}",
            compact(line.get("tokens")),
            span(line.get("seconds_to_drain")),
            span(line.get("oldest_seconds")),
        )
    return made


def clients_table(clients: Sequence[_Row]) -> Table:
    """Those who wait or run, then those who were given most."""
    figures = (Column(head, right=True) for head in ("waiting", "running", "share"))
    made = table(Column("key", widest=20), Column("class", widest=14), *figures, Column("", fills=True, least=4))
    for row in clients[:_KEYS]:
        share = float(row.get("share") or 0.0)
        made.add_row(
            Text(plain(row.get("client", "?")), "bold"),
            Text(plain(row.get("class", "")), "dim"),
            f"{row.get('waiting', 0):,}",
            f"{row.get('running', 0):,}",
            f"{100 * share:.0f} %",
            Bar((Part(share, "█", "blue"),), 1.0, least=4, most=24),
        )
    return made


def waiting_table(rows: Sequence[_Row], width: int) -> Table:
    """Requests in the order in which they would be served."""
    wide = width >= _WIDE
    widest = 20 if wide else 14
    columns = [Column("key", widest=widest), Column("model", widest=widest)]
    columns += [Column(head, right=True) for head in ("waits", "left", "tokens")]
    columns += [Column("session"), Column("id", widest=16)] if wide else []
    made = table(*columns, Column("why", fills=True))
    for row in rows:
        left = row.get("deadline_in_seconds")
        late = isinstance(left, int | float) and left < _SOON
        tokens = (row.get("prompt_tokens") or 0) + (row.get("output_tokens") or 0)
        cells = [
            Text(plain(row.get("client", "?")), "bold"),
            Text(plain(row.get("model", "?"))),
            Text(span(row.get("waited_seconds"))),
            Text(span(left), "red" if late else "dim"),
            Text(("" if row.get("tier") == "C" else "≈") + compact(tokens)),
        ]
        if wide:
            cells += [Text(plain(row.get("session") or "–"), "dim"), Text(plain(row.get("id", "")), "dim")]
        marks = [f"attempt {int(row['attempt']) + 1}"] if row.get("attempt") else []
        marks += ["told to come back"] if row.get("promised") else []
        made.add_row(*cells, Text.assemble((f"{', '.join(marks)}; " if marks else "", "cyan"), why_text(row)))
    return made
