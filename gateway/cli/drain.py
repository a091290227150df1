"""`kvgate drain BACKEND`: nothing new goes there, what runs ends, conversations go on elsewhere at their next turn."""

from __future__ import annotations

import argparse
import json
import sys
from threading import Event
from typing import Any
from urllib.parse import quote

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gateway import clock
from gateway.cli.admin_client import AdminClient, NoAnswer, add_admin_option
from gateway.cli.arguments import reads
from gateway.cli.printable import printable
from gateway.cli.terminal import Terminal
from gateway.config.sizes import parse_duration

__all__ = ["add_parser", "run"]

_LOOK_S = 0.5


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand and its options."""
    parser = subparsers.add_parser(
        "drain",
        help="keep a backend from new requests",
        description="Keeps a backend from new requests, before its engine is stopped or changed: what runs there ends "
        "well, and conversations go on elsewhere at their next turn. It stays so until --undo, or until the gateway "
        "is started again. Exit status 0, 1 without such a backend or when --wait ended first, 2 when nobody answers.",
    )
    parser.add_argument("backend", metavar="BACKEND", help="its name")
    parser.add_argument("--undo", action="store_true", help="let it have requests again")
    parser.add_argument(
        "--wait",
        metavar="TIME",
        nargs="?",
        type=reads(parse_duration),
        const=600.0,
        help="until nothing runs there (10m at most)",
    )
    add_admin_option(parser)
    parser.add_argument("--json", action="store_true", help="print its row of /admin/backends")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Drain, and wait if wanted."""
    client = AdminClient(args.admin, "drain")
    path = f"/admin/backends/{quote(args.backend, safe='')}/drain"
    try:
        status, row = client.get(path, "DELETE" if args.undo else "POST")
        if status == 404 and isinstance(row, dict) and client.get("/admin/queue")[0] == 200:
            print(printable(f"kvgate drain: {row['error']['message']}"), file=sys.stderr)
            return 1
        if status != 200 or not isinstance(row, dict):
            raise client.refused(status, row)
        if args.wait is not None and not args.undo:
            row = _until_empty(client, args.backend, row, args.wait, quiet=args.json)
    except NoAnswer as problem:
        print(printable(f"kvgate drain: {problem}"), file=sys.stderr)
        return 2
    running = int(row.get("running") or 0)
    if args.json:
        print(json.dumps(row, indent=2))
    elif args.undo:
        print(printable(f"{args.backend} gets requests again"))
    else:
        left = f"{running} still run there" if running else "nothing runs there"
        print(
            printable(f"{args.backend} gets nothing new; {left}. kvgate drain {args.backend} --undo takes that back.")
        )
    return int(args.wait is not None and not args.undo and running > 0)


def _until_empty(client: AdminClient, name: str, row: dict[str, Any], limit: float, *, quiet: bool) -> dict[str, Any]:
    """Look until nothing runs there, or the time is up; its last row."""
    until, first = clock.monotonic() + limit, int(row.get("running") or 0)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Terminal(stderr=True), disable=quiet, transient=True) as progress:
        task = progress.add_task(printable(f"{name} drains"), total=first)
        while (running := int(row.get("running") or 0)) and clock.monotonic() < until:
            progress.update(task, completed=max(0, first - running))
            Event().wait(_LOOK_S)
            _, body = client.get("/admin/backends")
            rows = body.get("backends") if isinstance(body, dict) else None
            row = next((each for each in rows or () if each.get("name") == name), {"running": 0})
    return row
