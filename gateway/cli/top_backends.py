"""The backends of `kvgate top`: how full each is, how fast it works, and what is odd about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gateway.cli.device_words import device_is_odd, device_words
from gateway.cli.top_bars import Bar, Part
from gateway.cli.top_rates import Rates
from gateway.cli.top_table import Column, table
from gateway.cli.top_words import compact, health_text, plain, reason_words, span
from gateway.telemetry.figures import count

__all__ = ["backend_remarks", "backends_table", "kv_bar"]

_WIDE, _WIDEST = 110, 140
_BOUNDS = {"slots": "slots", "tpot": "TPOT", "learned": "speed", "ramp": "ramp"}
"""What bounds the requests that run: the engine's slots, an objective, what it was found to bear, or its return."""
_ODD_FACTOR = 1.5
"""Times slower than predicted, from which on it is said."""

_WORKING = ("up", "trial", "resting")
_STALE = 10.0
"""Seconds after which a sample says nothing any more."""

_Row = Mapping[str, Any]


def backends_table(rows: Sequence[_Row], rates: Rates, width: int) -> Table:
    """One line a backend; more figures where there are more columns, `width` of them."""
    wide, widest = width >= _WIDE, width >= _WIDEST
    columns = [Column("  backend", widest=28 if wide else 18)]
    columns += [Column("engine", widest=28)] if widest else []
    columns += [Column("running", right=True), Column("by"), Column("KV cache", fills=True, least=8)]
    columns += [Column(head, right=True) for head in ("tokens", "prefill", "tok/s in", "out")]
    columns += [Column(head, right=True) for head in ("headroom", "sample")] if wide else []
    made = table(*columns)
    for row in rows:
        rate = rates.of(str(row.get("name")))
        cells: list[RenderableType] = [health_text(row)]
        cells += [Text(_about(row), "dim")] if widest else []
        cells += [_running(row), Text(_BOUNDS.get(str(row.get("limited_by")), ""), "dim"), kv_bar(row)]
        cells += [_tokens(row), _backlog(row), compact(rate.prefill), compact(rate.decode)]
        cells += [_headroom(row), _sample(row)] if wide else []
        made.add_row(*cells)
    return made


def kv_bar(row: _Row) -> RenderableType:
    """The pool: what is reserved, what others hold, what is free; the rest is kept free."""
    pool, reserved, foreign = (int(row.get(f"kv_{name}_tokens") or 0) for name in ("pool", "reserved", "foreign"))
    if pool <= 0:
        return Text("not known", "dim")
    parts = (
        Part(reserved, "█", "cyan"),
        Part(foreign, "▓", "magenta"),
        Part(float(row.get("kv_free_tokens") or 0), "░", "green" if row.get("health") in _WORKING else "dim"),
    )
    return Bar(parts, pool)


def backend_remarks(row: _Row) -> Iterator[Padding]:
    """Lines on what is out of the ordinary, the worst first."""
    name = plain(row.get("name", "?"))
    remarks = [*_faults(row), *_oddities(row)]
    for style, said in remarks:
        mark = "✗" if style == "red" else "▲" if style == "yellow" else "·"
        yield Padding(Text.assemble((f"{mark} ", style), (f"{name} ", "bold"), (plain(said), style)), (0, 0, 0, 2))


def _faults(row: _Row) -> Iterator[tuple[str, str]]:
    health, since = row.get("health"), row.get("health_since_seconds")
    if health not in ("up", None):
        retry = row.get("retry_in_seconds")
        said = f"{health} for {span(since)}" if isinstance(since, int | float) else str(health)
        said += f", next trial in {span(retry)}" if isinstance(retry, int | float) else ""
        yield (
            "red" if health in ("down", "open") else "yellow",
            said + (f": {row['error']}" if row.get("error") else ""),
        )
    elif row.get("error"):
        yield "yellow", str(row["error"])
    cause = row.get("cause")
    if isinstance(cause, Mapping) and cause.get("name") not in ("queueing", "loading", "dead", None):
        since = cause.get("since_seconds")
        ago = f" for {span(since)}" if isinstance(since, int | float) else ""
        yield "yellow", f"{cause.get('sentence')}{ago}: " + "; ".join(map(str, cause.get("evidence") or ()))
    for odd in row.get("mismatches") or ():
        if isinstance(odd, Mapping):
            told, expected = count(odd.get("engine")), count(odd.get("expected"))
            yield "yellow", f"{odd.get('fact')}: {told} by its engine, {expected} {odd.get('unit', '')} expected"


def _oddities(row: _Row) -> Iterator[tuple[str, str]]:
    if row.get("kept_from_new_requests"):
        yield "yellow", f"kept from new requests by hand (kvgate drain --undo); {row.get('running', 0)} still run there"
    if row.get("overcommitted"):
        yield "yellow", "an answer outgrew its reservation; nothing new until there is room"
    if row.get("lingering"):
        yield "yellow", f"{row['lingering']} abandoned requests still hold their places"
    others, inside = int(row.get("foreign_running") or 0), int(row.get("foreign_waiting") or 0)
    if others or inside:
        yield "magenta", f"others run {others} and queue {inside} there"
    if row.get("preemptions"):
        yield "yellow", f"{row['preemptions']:,} preemptions seen"
    slow = [
        f"{what} ×{row[key]:.1f}"
        for what, key in (("prefill", "prefill_factor"), ("decode", "decode_factor"))
        if float(row.get(key) or 1.0) >= _ODD_FACTOR
    ]
    if slow:
        yield "yellow", f"slower than predicted: {', '.join(slow)}"
    device = row.get("device_reports")
    if isinstance(device, Mapping):
        yield "yellow" if device_is_odd(device) else "dim", f"device: {device_words(device)}"
    waiting = row.get("waiting_for") or {}
    shown = [f"{reason_words(why)} {number}" for why, number in waiting.items() if why not in ("not_served", "down")]
    if shown:
        yield "dim", f"keeps waiting: {', '.join(shown)}"


def _about(row: _Row) -> str:
    known = [str(row[key]) for key in ("engine", "device") if row.get(key) not in (None, "", "unknown")]
    return plain(" on ".join(known))


def _running(row: _Row) -> Text:
    running, slots = int(row.get("running") or 0), int(row.get("slots") or 0)
    return Text(f"{running}/{slots}", "bold yellow" if running >= slots > 0 else "")


def _tokens(row: _Row) -> Text:
    taken = int(row.get("kv_reserved_tokens") or 0) + int(row.get("kv_foreign_tokens") or 0)
    return Text.assemble(compact(taken), (f"/{compact(row.get('kv_pool_tokens') or None)}", "dim"))


def _backlog(row: _Row) -> Text:
    backlog, limit = float(row.get("prefill_backlog_seconds") or 0.0), row.get("prefill_backlog_limit_seconds")
    full = isinstance(limit, int | float) and backlog >= limit
    return Text(span(backlog), "yellow" if full else "dim" if backlog < 0.05 else "")


def _headroom(row: _Row) -> str:
    headroom = row.get("kv_headroom")
    return f"{100 * headroom:.0f} %" if isinstance(headroom, int | float) and row.get("kv_pool_tokens") else "–"


def _sample(row: _Row) -> Text:
    """The age of what the engine told of itself last."""
    age = row.get("sample_age_seconds")
    return Text(span(age), "yellow" if isinstance(age, int | float) and age >= _STALE else "")
