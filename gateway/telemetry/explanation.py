"""A record in words and seconds: every candidate, its terms or why it fell out, and what was measured afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.core.reasons import SENTENCES, Reason

__all__ = ["explain_text"]

_Row = Mapping[str, Any]


def explain_text(record: Mapping[str, Any]) -> RenderableType:
    """Something that `rich` prints: the request, each decision with its candidates, predicted against measured."""
    parts: list[RenderableType] = [_heading(record)]
    decisions: Sequence[_Row] = record.get("decisions", ())
    for number, decision in enumerate(decisions, 1):
        parts.append(Text(""))
        parts.append(_verdict(decision, number, len(decisions)))
        candidates = decision.get("candidates", ())
        if candidates:
            parts.append(_candidates(decision, candidates))
    parts.append(Text(""))
    settled = record.get("settled")
    parts.append(_outcome(decisions[-1] if decisions else {}, settled) if settled else Text("not finished yet", "dim"))
    return Group(*parts)


def _heading(record: _Row) -> Text:
    request = record.get("request", {})
    text = Text.assemble(("request ", "bold"), (str(record.get("id", "?")), "bold cyan"))
    at = record.get("at")
    if isinstance(at, int | float):
        text.append(f"  {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC", "dim")
    asked = request.get("model", "?")
    estimate = request.get("estimates", {}).get(asked) or next(iter(request.get("estimates", {}).values()), None)
    text.append(f"\nmodel {asked}  client {request.get('client', '?')}  class {request.get('class', '?')}")
    text.append(f"  data {request.get('label', '?')}")
    if estimate:
        text.append(
            f"\nestimated prompt {estimate['prompt']:,} tokens (at most {estimate['prompt_high']:,}, tier "
            f"{estimate['tier']}), output {estimate['output']:,} (reserve {estimate['output_high']:,})"
        )
    needs = request.get("needs")
    if needs:
        text.append(f"\nneeds {', '.join(needs)}")
    if request.get("tried"):
        text.append(f"\nalready tried {', '.join(request['tried'])}")
    return text


def _sentence(reason: object) -> str:
    try:
        return SENTENCES[Reason(str(reason))]
    except (ValueError, KeyError):
        return str(reason)


def _verdict(decision: _Row, number: int, of: int) -> Text:
    verdict, reason = str(decision.get("verdict", "?")), decision.get("reason")
    style = {"admit": "bold green", "wait": "bold yellow"}.get(verdict, "bold red")
    text = Text(f"decision {number} of {of}: " if of > 1 else "decision: ")
    text.append(verdict, style)
    if decision.get("backend"):
        text.append(f" → {decision['backend']}")
        served = decision.get("served_as") or decision.get("model")
        text.append(f" ({served}{', a fallback' if decision.get('tier') else ''})")
    else:
        text.append(f": {_sentence(reason)}")
    if decision.get("limit") is not None:
        text.append(f"; at most {decision['limit']:,} tokens fit")
    if decision.get("retry_after") is not None:
        text.append(f"; try again in {_seconds(decision['retry_after'])}")
    return text


def _candidates(decision: _Row, candidates: Sequence[_Row]) -> Table:
    names: list[str] = []
    for candidate in candidates:
        names.extend(name for name, _ in candidate.get("terms", ()) if name not in names)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("backend")
    table.add_column("model")
    for name in (*names, "total"):
        table.add_column(name.replace("_", " "), justify="right")
    table.add_column("prompt / cached / KV", justify="right")
    table.add_column("why not")
    ordered = sorted(candidates, key=lambda c: (c.get("total") is None, c.get("tier", 0), c.get("total") or 0.0))
    for candidate in ordered:
        chosen = candidate["backend"] == decision.get("backend") and candidate.get("total") is not None
        chosen = chosen and candidate.get("tier", 0) == decision.get("tier", 0)
        terms = dict(candidate.get("terms", ()))
        table.add_row(
            f"▶ {candidate['backend']}" if chosen else f"  {candidate['backend']}",
            str(candidate.get("model", "")),
            *(_seconds(terms.get(name)) for name in names),
            _seconds(candidate.get("total")),
            _footprint(candidate.get("footprint")),
            _why_not(candidate),
            style="bold green" if chosen else ("dim" if candidate.get("total") is None else ""),
        )
    return table


def _why_not(candidate: _Row) -> str:
    reason = candidate.get("reason")
    if reason is None:
        return ""
    needed, limit = candidate.get("needed"), candidate.get("limit")
    detail = f" (needs {needed:,g}, limit {limit:,g})" if needed is not None and limit is not None else ""
    return _sentence(reason) + detail


def _footprint(footprint: _Row | None) -> str:
    if not footprint:
        return ""
    return f"{footprint['prompt']:,} / {footprint['cached']:,} / {footprint['kv']:,}"


def _seconds(value: object) -> str:
    if not isinstance(value, int | float):
        return ""
    if abs(value) < 1.0:
        return f"{value * 1000:.0f} ms"
    return f"{value:.2f} s" if abs(value) < 100 else f"{value:,.0f} s"


def _outcome(decision: _Row, settled: _Row) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("", "predicted", "measured"):
        table.add_column(name, justify="left" if not name else "right")
    footprint = decision.get("footprint") or {}
    table.add_row("outcome", "", f"{settled['outcome']} ({settled['status']})")
    if settled.get("code"):
        table.add_row("error code", "", str(settled["code"]))
    rows: tuple[tuple[str, object, object], ...] = (
        ("queue", None, settled.get("queue_s")),
        ("first token", decision.get("predicted_ttft"), settled.get("ttft_s")),
        ("per token", decision.get("predicted_tpot"), settled.get("tpot_s")),
        ("whole request", None, settled.get("total_s")),
    )
    for name, predicted, measured in rows:
        if predicted is not None or measured is not None:
            table.add_row(name, _seconds(predicted), _seconds(measured))
    counts = (
        ("prompt tokens", footprint.get("prompt"), settled.get("prompt_tokens")),
        ("cached tokens", footprint.get("cached"), settled.get("cached_tokens")),
        ("output tokens", footprint.get("output_mean"), settled.get("completion_tokens")),
    )
    for name, predicted, measured in counts:
        if predicted is not None or measured is not None:
            table.add_row(name, *(f"{value:,}" if value is not None else "" for value in (predicted, measured)))
    return table
