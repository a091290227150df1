"""`kvgate check FILE`: what is wrong with a file, and what it means."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gateway.cli.check_json import as_json
from gateway.cli.check_problems import show_problems
from gateway.cli.check_report import report
from gateway.cli.check_view import show_report
from gateway.cli.terminal import Terminal
from gateway.config.endpoint import Endpoint, endpoints
from gateway.config.load import load
from gateway.config.problems import Problems
from gateway.engines.adapter import Facts

__all__ = ["Discover", "add_parser", "run"]

Discover = Callable[[Sequence[Endpoint]], Mapping[str, Facts | str]]
"""Asks engines; answers by backend name what each said, or in words why it said nothing."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `check` to the command line."""
    parser = subparsers.add_parser(
        "check",
        help="say what is wrong with a file, and what the file means",
        description="Prints every problem with its line, and what the file means: bytes a token, sequences that fit "
        "each backend, context caps, who can stand in for whom, which data can go where. Exit status: 0 the file can "
        "be used, 1 it can't.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the policy file")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--offline", action="store_true", help="don't ask the engines what they serve")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, discover: Discover | None = None) -> int:
    """Check a file; 0 when it can be used, 1 when not. `discover` asks the engines, by default over the network."""
    console = Terminal()
    try:
        loaded = load(args.file, lenient=True)
    except Problems as found:
        if args.json:
            print(json.dumps(as_json(str(args.file), found.problems, (), None), indent=2))
        else:
            show_problems(console, found.problems, args.file)
        return 1
    asked = None if args.offline else (discover or _over_the_network)(tuple(endpoints(loaded.policy).values()))
    meaning = report(loaded.policy, asked)
    if args.json:
        print(json.dumps(as_json(str(args.file), (), loaded.warnings, meaning), indent=2))
    else:
        show_report(console, meaning, loaded, args.file)
    return 0


def _over_the_network(engines: Sequence[Endpoint]) -> Mapping[str, Facts | str]:
    from gateway.cli.discover import ask_engines

    return ask_engines(engines)
