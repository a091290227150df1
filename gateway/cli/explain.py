"""`kvgate explain ID`: why a request went where it went, and what came of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from rich.console import Console

from gateway.telemetry.explanation import explain_text

__all__ = ["add_parser", "run"]

_ADMIN = "http://127.0.0.1:9090"
_TIMEOUT_S = 5.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand and its options."""
    parser = subparsers.add_parser("explain", help="why a request went where it went", description=__doc__)
    parser.add_argument("id", metavar="ID", help="the x-kvgate-decision of an answer or error")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--admin", metavar="URL", default=_ADMIN, help=f"admin port of the gateway (default {_ADMIN})")
    source.add_argument("--journal", metavar="FILE", type=Path, help="read a journal file (and its older ones) instead")
    parser.add_argument("--json", action="store_true", help="print the record as it is")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the explanation. Exit status 0, 1 when the id is not known, 2 when there was nobody or no file to ask."""
    try:
        record = _from_journal(args.journal, args.id) if args.journal is not None else _from_admin(args.admin, args.id)
    except (OSError, ValueError) as problem:
        print(f"kvgate explain: {problem}", file=sys.stderr)
        return 2
    if record is None:
        print(f"kvgate explain: no decision {args.id} there; it may be too old, or of another gateway", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(record, indent=2))
    else:
        Console().print(explain_text(record))
    return 0


def _from_admin(url: str, request_id: str) -> dict[str, Any] | None:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"--admin takes an http:// or https:// URL, not {url!r}")
    request = Request(
        f"{url.rstrip('/')}/admin/decisions/{quote(request_id, safe='')}", headers={"x-kvgate-admin": "explain"}
    )
    try:
        with urlopen(request, timeout=_TIMEOUT_S) as answer:
            record: dict[str, Any] = json.load(answer)
            return record
    except HTTPError as err:
        with err:
            if err.code == 404:
                return None
        raise ValueError(f"{url} answered {err.code}") from None
    except URLError as err:
        raise ValueError(
            f"no gateway answers at {url} ({err.reason}); is its admin port elsewhere? see --admin"
        ) from None


def _journal_files(path: Path) -> Iterator[Path]:
    """The file, then the ones that were put aside, newest first."""
    yield path
    number = 1
    while (older := path.with_name(f"{path.name}.{number}")).exists():
        yield older
        number += 1


def _from_journal(path: Path, request_id: str) -> dict[str, Any] | None:
    wanted = json.dumps(request_id).encode()
    for file in _journal_files(path):
        found: dict[str, Any] | None = None
        with file.open("rb") as lines:
            for line in lines:
                # Most lines are other requests'; only a line that mentions the id is worth parsing.
                if wanted not in line:
                    continue
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                if isinstance(record, dict) and record.get("id") == request_id:
                    found = record
        if found is not None:
            return found
    return None
