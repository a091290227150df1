"""A record in words and seconds: what was asked, each decision with its candidates, predicted against measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gateway.core.failure import SENTENCES, FailureKind
from gateway.telemetry.figures import count, ratio, seconds
from gateway.telemetry.parting import parting_words
from gateway.telemetry.weighed import Costs, candidate_lines, sentence

__all__ = ["explain_text"]

_Row = Mapping[str, Any]

_COUNTED = {"A": "estimated from its bytes", "B": "its start counted, the rest estimated", "C": "counted"}
_WAIT_SHOWN = 0.005
"""Seconds in the queue from which a decision says so."""


def explain_text(record: Mapping[str, Any]) -> RenderableType:
    """Something that `rich` prints, for 80 columns and more, of what `telemetry.record.entry_record` gives."""
    decisions: Sequence[_Row] = record.get("decisions", ())
    settled: _Row | None = record.get("settled")
    parts: list[RenderableType] = [_heading(record), _request(record.get("request", {}))]
    for number, decision in enumerate(decisions, 1):
        last = number == len(decisions)
        parts += [Text(""), _verdict(record, decision, number, len(decisions))]
        if decision.get("candidates"):
            parts += [Text(""), _indented(candidate_lines(decision))]
        if any(candidate.get("total") is not None for candidate in decision.get("candidates", ())):
            parts += [Text(""), _indented(Costs(decision))]
        if decision.get("verdict") == "admit" and (not last or decision.get("failed")):
            parts += [Text(""), Text(_failed(decision, {} if last else decisions[number]), "red")]
    last_one: _Row = decisions[-1] if decisions else {}
    if settled is not None:
        parts += [Text(""), *_outcome(record, last_one, settled)]
    elif last_one.get("verdict") == "admit":
        parts += [Text(""), Text("… not finished yet", "yellow")]
    return Group(*parts)


def _failed(decision: _Row, following: _Row) -> str:
    """How the attempt under a decision failed, and whether the decision after it made another."""
    try:
        how = SENTENCES[FailureKind(decision.get("failed", ""))]
    except ValueError:
        how = "failed before its first token"
    backend, then = decision.get("backend"), ""
    if following.get("verdict") == "admit":
        then = "; asked again" if following.get("backend") == backend else "; tried elsewhere"
    return f"{backend} {how}{then}"


def _indented(what: RenderableType) -> Padding:
    return Padding(what, (0, 0, 0, 2), expand=False)


def _heading(record: _Row) -> RenderableType:
    title = Text.assemble((str(record.get("id", "?")), "bold cyan"))
    at = record.get("at")
    if isinstance(at, int | float):
        title.append(f"  {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC", "dim")
    return Rule(title, align="left", style="dim")


def _request(request: _Row) -> RenderableType:
    asked = str(request.get("model", "?"))
    wants = [asked, "streamed" if request.get("stream") else "in one piece"]
    if request.get("max_tokens") is not None:
        wants.append(f"at most {_tokens(request['max_tokens'])}")
    if (request.get("n") or 1) > 1:
        wants.append(f"{request['n']} choices")
    if request.get("needs"):
        wants.append(f"needs {', '.join(request['needs'])}")
    rows = [("asked for", ", ".join(wants)), ("from", _sender(request))]
    estimates = request.get("estimates") or {}
    estimate = estimates.get(asked) or next(iter(estimates.values()), None)
    if estimate:
        rows.append(("prompt", _prompt(estimate)))
    known = [
        f"{backend} {hit['share'] * hit.get('trust', 1.0):.0%}" for backend, hit in request.get("hits", {}).items()
    ]
    if known:
        rows.append(("cached", f"{', '.join(known)} of the prompt, as far as is known"))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    return table


def _sender(request: _Row) -> str:
    said = f"client {request.get('client', '?')}, class {request.get('class', '?')}, {request.get('label', '?')} data"
    return f"{said}, already failed on {', '.join(request['tried'])}" if request.get("tried") else said


def _prompt(estimate: _Row) -> str:
    said = f"about {_tokens(estimate['prompt'])}"
    if estimate.get("prompt_high", 0) > estimate["prompt"]:
        said += f" (95 % sure: under {count(estimate['prompt_high'])})"
    return f"{said}, {_COUNTED.get(str(estimate.get('tier')), 'estimated')}"


def _tokens(number: float) -> str:
    return f"{count(number)} token{'' if number == 1 else 's'}"


def _verdict(record: _Row, decision: _Row, number: int, of: int) -> Text:
    verdict, reason = str(decision.get("verdict", "?")), decision.get("reason")
    text = Text()
    if of > 1:
        text.append(f"{number}/{of} ", "dim")
    waited, after = _waited(record, decision), ""
    if waited >= _WAIT_SHOWN:
        # Later ones came after failed attempts, which took their time too.
        after = f" after {seconds(waited)}{' in the queue' if number == 1 else ''}"
    if verdict == "admit":
        text.append("✓ admitted", "bold green")
        text.append(f" to {decision.get('backend')}{_under(record, decision)}{after}")
        return text
    if verdict == "wait":
        text.append("… waits", "bold yellow")
        text.append(f"{after and f', {seconds(waited)} so far'}: {_tail(sentence(reason))}")
        return text
    # Whoever was in the queue for no time at all was refused, whatever room of the program said no.
    text.append("✗ shed" if verdict == "shed" and after else "✗ refused", "bold red")
    text.append(f"{after}: {sentence(reason)}")
    if decision.get("limit") is not None:
        text.append(f"; at most {_tokens(decision['limit'])} fit")
    if quota := decision.get("quota"):
        text.append(f"; {quota.get('quota')}: {count(quota.get('left'))} of {count(quota.get('amount'))} left")
    if decision.get("retry_after") is not None:
        text.append(f"; try again in {seconds(decision['retry_after'])}")
    return text


def _tail(said: str) -> str:
    return said.removeprefix("waiting: ").removeprefix("waiting ")


def _waited(record: _Row, decision: _Row) -> float:
    now, arrival = decision.get("now"), record.get("request", {}).get("arrival")
    return float(now - arrival) if isinstance(now, int | float) and isinstance(arrival, int | float) else 0.0


def _under(record: _Row, decision: _Row) -> str:
    """The model that answers, where it is not simply the one asked for."""
    asked, model, served = record.get("request", {}).get("model"), decision.get("model"), decision.get("served_as")
    if decision.get("tier"):
        return f" with {model}, fallback {decision['tier']} of {asked}"
    return f" as {served}" if served and served != asked else ""


def _outcome(record: _Row, decision: _Row, settled: _Row) -> list[RenderableType]:
    good = settled["outcome"] == "completed"
    said = f"{'✓' if good else '✗'} {str(settled['outcome']).replace('_', ' ')}"
    line = Text.assemble((said, "bold green" if good else "bold red"))
    line.append(f", HTTP {settled['status']}{', ' + settled['code'] if settled.get('code') else ''}")
    line.append(f", {seconds(settled.get('total_s'))} from arrival to end")
    if decision.get("verdict") != "admit":
        return [line]
    told: list[RenderableType] = [line, Text(""), _indented(_measured(record, decision, settled))]
    if parts := settled.get("parts"):
        told += [Text(""), _indented(Text(f"! {parting_words(parts)}", "yellow"))]
    return told


def _measured(record: _Row, decision: _Row, settled: _Row) -> Table:
    footprint, waited = decision.get("footprint") or {}, _waited(record, decision)
    first, each = decision.get("predicted_ttft"), decision.get("predicted_tpot")
    output = footprint.get("output_mean")
    whole = None
    if first is not None and each is not None and output is not None:
        whole = waited + first + output * each
    durations = (
        ("queue", None, settled.get("queue_s")),
        ("first token", first, settled.get("ttft_s")),
        ("per token", each, settled.get("tpot_s")),
        ("whole request", whole, settled.get("total_s")),
    )
    counts = (
        ("prompt tokens", footprint.get("prompt"), settled.get("prompt_tokens")),
        ("of them cached", footprint.get("cached"), settled.get("cached_tokens")),
        ("output tokens", output, settled.get("completion_tokens")),
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(no_wrap=True)
    for name in ("predicted", "measured", ""):
        table.add_column(name, justify="right", no_wrap=True)
    for rows, form in ((durations, seconds), (counts, count)):
        for label, predicted, measured in rows:
            if predicted is not None or measured is not None:
                table.add_row(
                    label, form(predicted) or "–", form(measured) or "–", Text(ratio(measured, predicted), "dim")
                )
    return table
