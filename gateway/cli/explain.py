"""`kvgate explain ID`: why a request went where it went, and what came of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from rich.console import Console

from gateway.telemetry.explanation import explain_text

__all__ = ["add_parser", "run"]

_ADMIN = "http://127.0.0.1:9090"
_TIMEOUT_S = 5.0
_HEADER = "x-kvgate-decision:"


class _NoAnswer(Exception):
    """There was nobody, or no file, to ask; the message says so in a sentence."""


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
    source.add_argument("--admin", metavar="URL", default=_ADMIN, help=f"admin port of the gateway (default {_ADMIN})")
    source.add_argument("--journal", metavar="FILE", type=Path, help="read a journal file (and its older ones) instead")
    parser.add_argument("--json", action="store_true", help="print the record as it is")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the explanation. Exit status 0, 1 when the id is not known, 2 when there was nobody or no file to ask."""
    wanted = args.id.strip().removeprefix(_HEADER).strip()
    try:
        record = _from_journal(args.journal, wanted) if args.journal is not None else _from_admin(args.admin, wanted)
    except _NoAnswer as problem:
        print(f"kvgate explain: {problem}", file=sys.stderr)
        return 2
    if record is None:
        print(f"kvgate explain: {_unknown(args, wanted)}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(record, indent=2))
    else:
        Console(highlight=False).print(explain_text(record))
    return 0


def _unknown(args: argparse.Namespace, wanted: str) -> str:
    if args.journal is not None:
        return f"no decision {wanted} in {args.journal} or the older files beside it"
    return (
        f"the gateway at {args.admin} remembers no decision {wanted}; it keeps the last few thousand since its start, "
        "--journal FILE looks further back"
    )


def _from_admin(url: str, request_id: str) -> dict[str, Any] | None:
    if not url.startswith(("http://", "https://")):
        raise _NoAnswer(f"--admin takes an http:// or https:// URL, not {url!r}")
    base = url.rstrip("/")
    status, record = _get(base, f"/admin/decisions/{quote(request_id, safe='')}")
    if status == 200 and isinstance(record, dict) and "decisions" in record:
        return record
    if status == 404 and _get(base, "/admin/queue")[0] == 200:
        return None
    said = record.get("error", {}).get("message") if status == 403 and isinstance(record, dict) else None
    raise _NoAnswer(said or f"{url} is not a gateway's admin port (`server.admin` in its file, 9090 by default)")


def _get(base: str, path: str) -> tuple[int, Any]:
    """Status and JSON body, None where there is none. Asks directly, whatever proxy the environment names."""
    try:
        request = Request(f"{base}{path}", headers={"x-kvgate-admin": "explain"})
        with build_opener(ProxyHandler({})).open(request, timeout=_TIMEOUT_S) as answer:
            return answer.status, _json(answer.read())
    except HTTPError as err:
        with err:
            return err.code, _json(err.read())
    except (OSError, ValueError, HTTPException) as err:  # nobody, or no such thing as this URL
        reason = getattr(err, "reason", None) or err
        said = getattr(reason, "strerror", None) or str(reason) or type(err).__name__
        raise _NoAnswer(
            f"no gateway answers at {base} ({said.lower()}); is it running, and is this its admin port? See --admin"
        ) from None


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _from_journal(path: Path, request_id: str) -> dict[str, Any] | None:
    try:
        for file in _journal_files(path):
            found = _last_of(file, request_id)
            if found is not None:
                return found
    except OSError as err:
        raise _NoAnswer(
            f"can't read the journal {err.filename or path}: {(err.strerror or str(err)).lower()}"
        ) from None
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
                record = _json(line)
                if isinstance(record, dict) and record.get("id") == request_id:
                    found = record
    return found
