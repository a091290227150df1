"""`kvgate replay FILE`: recorded decisions made again, as they were or by another file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from gateway.cli.replay_view import as_json, show
from gateway.cli.terminal import Terminal
from gateway.config.compile import compile_policy
from gateway.config.load import load
from gateway.errors import ConfigError
from gateway.replay.reading import files_of, looks
from gateway.replay.report import replay

__all__ = ["add_parser", "run"]

_EXAMPLES = """\
  kvgate replay /var/log/kvgate/recording.jsonl                        the same, bit for bit?
  kvgate replay recording.jsonl --config new.yaml                      what another file would have chosen

`telemetry.recording` of the file makes a running gateway write such recordings, and `kvgate simulate --record` writes
one of a simulated run. Exit status: 0 all is the same (with --config: all was read), 1 something is not.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `replay` to the command line."""
    parser = subparsers.add_parser(
        "replay",
        help="make recorded decisions again, to see that they are the same, or by another file",
        description="Makes every decision of a recording again, from what was known at that moment, and compares all "
        "of its figures bit for bit.",
        epilog=f"examples:\n{_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the recording; older files beside it are read first")
    parser.add_argument("--config", type=Path, metavar="OTHER",
                        help="decide by this file, on what backends held and did in the recording")  # fmt: skip
    parser.add_argument("--first", type=_count, default=5, metavar="N", help="differences that are shown whole (5)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Replay; 0 when all is the same, or another file was asked about. Raises ConfigError for files it can't use."""
    plan = compile_policy(load(args.config, lenient=True).policy) if args.config is not None else None
    report = replay(looks(files_of(args.file)), plan, most=args.first)
    if not report.looks:
        raise ConfigError(f"{args.file} has no decision that can be made again")
    if args.json:
        print(json.dumps(as_json(report), indent=2))
    else:
        show(Terminal(), report, args.file, args.config)
    return 1 if plan is None and report.diverging else 0


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)
