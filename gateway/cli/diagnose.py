"""`kvgate diagnose [BACKEND]`: what is wrong with a backend, since when, how that is known, and what to try."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from rich.padding import Padding
from rich.text import Text

from gateway.cli.admin_client import AdminClient, NoAnswer, add_admin_option
from gateway.cli.device_words import device_words
from gateway.cli.printable import printable
from gateway.cli.terminal import Terminal
from gateway.cli.top_words import plain, span
from gateway.core.degrading.causes import ADVICE, FINE, SENTENCES, Cause

__all__ = ["add_parser", "run", "told"]

_SLOWER = 1.1
"""Learned factor from which on a backend is told to be slower than the catalogue."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand and its options."""
    parser = subparsers.add_parser(
        "diagnose",
        help="what is wrong with a backend",
        description="Says in sentences what is wrong with a backend, since when, how that is known, and what to try. "
        "Exit status 0 when nothing is, 1 when something is or there is no such backend, 2 when nobody answers.",
    )
    parser.add_argument("backend", metavar="BACKEND", nargs="?", help="its name; without one, all of them")
    add_admin_option(parser)
    parser.add_argument("--json", action="store_true", help="print the findings for a program")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what is known of one backend, or of all."""
    client = AdminClient(args.admin, "diagnose")
    try:
        status, body = client.get("/admin/backends")
        if status != 200 or not isinstance(body, dict) or not isinstance(body.get("backends"), list):
            raise client.refused(status, body)
    except NoAnswer as problem:
        print(printable(f"kvgate diagnose: {problem}"), file=sys.stderr)
        return 2
    rows = {str(row["name"]): row for row in body["backends"] if isinstance(row, dict) and "name" in row}
    if args.backend is not None and args.backend not in rows:
        near = get_close_matches(args.backend, rows, 1)
        hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(rows) or 'none'}"
        print(printable(f"kvgate diagnose: there is no backend {args.backend}; {hint}"), file=sys.stderr)
        return 1
    chosen = [rows[args.backend]] if args.backend is not None else list(rows.values())
    if args.json:
        print(json.dumps([_finding(row) for row in chosen], indent=2))
    else:
        console = Terminal()
        for row in chosen:
            for line in told(row):
                console.print(line)
    return int(any(_cause(row)["name"] not in FINE for row in chosen))


def told(row: Mapping[str, Any]) -> Iterator[Text | Padding]:
    """The lines about one backend, as /admin/backends describes it."""
    cause, health = _cause(row), str(row.get("health") or "unknown")
    name, device = plain(row.get("name", "?")), plain(row.get("device") or "an unknown device")
    well = cause["name"] in FINE
    yield Text.assemble(
        ("✓ " if well else "✗ ", "green" if well else "red"),
        (name, "bold"),
        f"  {plain(row.get('engine') or '')} on {device}, {plain(health)}{_for(row.get('health_since_seconds'))}",
    )
    yield _line(f"{plain(str(cause['sentence'])).capitalize()}{_since(cause.get('since_seconds'))}.")
    for evidence in cause.get("evidence") or ():
        yield _line(f"· {plain(str(evidence))}")
    for said in _beside(row):
        yield _line(f"· {said}", "dim")
    if not well:
        other = cause.get("runner_up")
        if other:
            yield _line(f"If not that, then most likely: {plain(str(other))}.", "dim")
        yield _line(f"→ {plain(str(cause['advice']))}")


def _beside(row: Mapping[str, Any]) -> Iterator[str]:
    """What is worth knowing whatever the cause."""
    age = row.get("sample_age_seconds")
    if age is None:
        yield "its engine tells nothing of its load: only what goes through this gateway is seen"
    elif isinstance(age, int | float) and age > 10.0:
        yield f"its engine has told nothing of its load for {span(age)}"
    told = row.get("device_reports")
    if isinstance(told, Mapping):
        yield f"its device: {plain(device_words(told))}"
    for phase in ("prefill", "decode"):
        factor = row.get(f"{phase}_factor")
        if isinstance(factor, int | float) and factor > _SLOWER:
            yield f"{phase} takes {factor:.2f} times what the catalogue says of this device"
    others = row.get("foreign_running")
    if others:
        yield f"{others} requests there come from others than this gateway"
    for odd in row.get("mismatches") or ():
        if isinstance(odd, Mapping) and odd.get("fact"):
            yield f"{plain(str(odd['fact']))} is not what was expected: see kvgate check"


def _cause(row: Mapping[str, Any]) -> Mapping[str, Any]:
    cause = row.get("cause")
    if isinstance(cause, Mapping):
        return cause
    return {"name": Cause.NONE, "sentence": SENTENCES[Cause.NONE], "evidence": [], "advice": ADVICE[Cause.NONE]}


def _finding(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("name", "engine", "device", "health", "health_since_seconds", "prefill_factor", "decode_factor")
    return {key: row.get(key) for key in kept} | {"cause": dict(_cause(row)), "notes": list(_beside(row))}


def _line(text: str, style: str = "") -> Padding:
    return Padding(Text(text, style=style), (0, 0, 0, 2))


def _for(seconds: object) -> str:
    return f" for {span(seconds)}" if isinstance(seconds, int | float) else ""


def _since(seconds: object) -> str:
    return f", for {span(seconds)} now" if isinstance(seconds, int | float) else ""
