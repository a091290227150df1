"""`kvgate explain ID`: why a request went where it went, and what came of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gateway.cli.admin_client import AdminClient, NoAnswer, add_admin_option
from gateway.cli.printable import printable
from gateway.cli.terminal import Terminal
from gateway.telemetry.explanation import explain_text

__all__ = ["add_parser", "run"]

_HEADER = "x-kvgate-decision:"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand and its options."""
    parser = subparsers.add_parser(
        "explain",
        help="why a request went where it went",
        description="Says why a request went where it went: every backend with its cost in seconds or the reason why "
        "it fell out, and what was predicted beside what was measured.",
    )
    parser.add_argument("id", metavar="ID", help="the x-kvgate-decision of an answer, the decision_id of an error")
    source = parser.add_mutually_exclusive_group()
    add_admin_option(source)
    source.add_argument("--journal", metavar="FILE", type=Path, help="read a journal file (and its older ones) instead")
    parser.add_argument("--json", action="store_true", help="print the record as it is")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the explanation. Exit status 0, 1 when the id is not known, 2 when there was nobody or no file to ask."""
    wanted = args.id.strip().removeprefix(_HEADER).strip()
    try:
        record = _from_journal(args.journal, wanted) if args.journal is not None else _from_admin(args.admin, wanted)
    except NoAnswer as problem:
        print(printable(f"kvgate explain: {problem}"), file=sys.stderr)
        return 2
    if record is None:
        print(printable(f"kvgate explain: {_unknown(args, wanted)}"), file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(record, indent=2))
    else:
        Terminal().print(explain_text(record))
    return 0


def _unknown(args: argparse.Namespace, wanted: str) -> str:
    if args.journal is not None:
        return f"no decision {wanted} in {args.journal} or the older files beside it"
    return (
        f"the gateway at {args.admin} remembers no decision {wanted}; it keeps the last few thousand since its start, "
        "--journal FILE looks further back"
    )


def _from_admin(url: str, request_id: str) -> dict[str, Any] | None:
    client = AdminClient(url, "explain")
    status, record = client.get(f"/admin/decisions/{quote(request_id, safe='')}")
    if status == 200 and isinstance(record, dict) and "decisions" in record:
        return record
    if status == 404 and client.get("/admin/queue")[0] == 200:
        return None
    raise client.refused(status, record)


def _from_journal(path: Path, request_id: str) -> dict[str, Any] | None:
    try:
        for file in _journal_files(path):
            found = _last_of(file, request_id)
            if found is not None:
                return found
    except OSError as err:
        raise NoAnswer(f"can't read the journal {err.filename or path}: {(err.strerror or str(err)).lower()}") from None
    return None


def _journal_files(path: Path) -> Iterator[Path]:
    """The file, then the ones that were put aside, newest first."""
    yield path
    number = 1
    while (older := path.with_name(f"{path.name}.{number}")).exists():
        yield older
        number += 1


def _last_of(file: Path, request_id: str) -> dict[str, Any] | None:
    wanted = json.dumps(request_id).encode()
    found: dict[str, Any] | None = None
    with file.open("rb") as lines:
        for line in lines:
            # Most lines are other requests'; only a line that mentions the id is worth parsing.
            if wanted in line:
                found = _record(line, request_id) or found
    return found


def _record(line: bytes, request_id: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.get("id") == request_id else None
