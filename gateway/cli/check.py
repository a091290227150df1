"""`kvgate check FILE`: what is wrong with a file, and what it means."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.cli.check_json import as_json
from gateway.cli.check_problems import show_problems
from gateway.cli.check_report import report
from gateway.cli.check_view import show_report
from gateway.cli.terminal import Terminal
from gateway.config.endpoint import Endpoint, endpoints
from gateway.config.load import load
from gateway.config.problems import Problems
from gateway.engines.adapter import Facts

__all__ = ["AskDevices", "Discover", "add_parser", "run"]

Discover = Callable[[Sequence[Endpoint]], Mapping[str, Facts | str]]
"""Asks engines; answers by backend name what each said, or in words why it said nothing."""
AskDevices = Callable[[Sequence[Endpoint]], Mapping[str, Mapping[str, Any]]]
"""Asks exporters; answers by backend name how its device fares, of those that have some."""


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
    parser.add_argument("--offline", action="store_true", help="ask neither engines nor devices")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, discover: Discover | None = None, devices: AskDevices | None = None) -> int:
    """Check a file; 0 when it can be used, 1 when not. Engines and devices are asked over the network by default."""
    console = Terminal()
    try:
        loaded = load(args.file, lenient=True)
    except Problems as found:
        if args.json:
            print(json.dumps(as_json(str(args.file), found.problems, (), None), indent=2))
        else:
            show_problems(console, found.problems, args.file)
        return 1
    known = tuple(endpoints(loaded.policy).values())
    asked = None if args.offline else (discover or _over_the_network)(known)
    told = {} if args.offline else (devices or _devices_over_the_network)(known)
    meaning = report(loaded.policy, asked, told)
    if args.json:
        print(json.dumps(as_json(str(args.file), (), loaded.warnings, meaning), indent=2))
    else:
        show_report(console, meaning, loaded, args.file)
    return 0


def _over_the_network(engines: Sequence[Endpoint]) -> Mapping[str, Facts | str]:
    from gateway.cli.discover import ask_engines

    return ask_engines(engines)


def _devices_over_the_network(known: Sequence[Endpoint]) -> Mapping[str, Mapping[str, Any]]:
    from gateway.cli.ask_devices import ask_devices

    return ask_devices(known)
