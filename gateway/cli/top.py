"""`kvgate top`: a running gateway's fleet and queue, live."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live

from gateway import clock
from gateway.cli.admin_client import AdminClient, NoAnswer, add_admin_option
from gateway.cli.arguments import reads
from gateway.cli.printable import printable
from gateway.cli.terminal import Terminal
from gateway.cli.top_rates import Rates
from gateway.cli.top_view import Frame, View
from gateway.config.sizes import parse_duration

__all__ = ["Polls", "add_parser", "run", "watch"]

_SHORTEST_S = 0.1
_LOOK_S = 0.05
_never = threading.Event()


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand and its options."""
    parser = subparsers.add_parser(
        "top",
        help="the fleet and its queue, live",
        description="Shows a running gateway: how full each backend is, how fast it works, what waits for each model, "
        "and why. Ctrl-C ends it.",
    )
    add_admin_option(parser)
    parser.add_argument("--interval", metavar="TIME", type=reads(_interval), default=1.0, help="between looks (1s)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--once", action="store_true", help="print one frame and end")
    how.add_argument("--json", action="store_true", help="print what the admin port says, once, as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show it until interrupted. Exit status 0; with --once or --json 2 when nobody answers."""
    try:
        client = AdminClient(args.admin, "top")
        if args.json:
            backends, queue = _fetch(client)
            print(json.dumps({"backends": backends, "queue": queue}, indent=2))
            return 0
        polls = Polls(client)
        if args.once:
            frame = polls.next()
            if frame.problem is not None:
                raise NoAnswer(frame.problem)
            Terminal().print(View(frame))
            return 0
    except NoAnswer as problem:
        print(printable(f"kvgate top: {problem}"), file=sys.stderr)
        return 2
    with _Stop() as stop:
        watch(polls, Terminal(), lambda: stop.within(args.interval))
    return 0


def _fetch(client: AdminClient) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The two documents. Raises NoAnswer."""
    found: list[Any] = []
    for path in ("/admin/backends", "/admin/queue"):
        status, body = client.get(path)
        if status != 200 or not isinstance(body, dict):
            raise client.refused(status, body)
        found.append(body)
    rows, queue = found[0].get("backends"), found[1]
    if not isinstance(rows, list) or not isinstance(queue.get("models"), dict):
        raise client.refused(200, None)
    return rows, queue


class Polls:
    """Looks at one gateway again and again; what it said last stays while nobody answers."""

    def __init__(self, client: AdminClient, now: Callable[[], float] = clock.monotonic) -> None:
        self._client = client
        self._now = now
        self._rates = Rates()
        self._last = Frame(client.url, "", known=False)

    def next(self) -> Frame:
        """Look once more. Never raises: a frame says what is wrong."""
        try:
            backends, queue = _fetch(self._client)
        except NoAnswer as problem:
            self._last = replace(self._last, problem=str(problem))
            return self._last
        self._rates.take(backends, self._now())
        self._last = Frame(self._client.url, _time_of_day(), backends, queue, self._rates)
        return self._last


def watch(polls: Polls, console: Console, rest: Callable[[], bool]) -> None:
    """Frame after frame until `rest` says that it is over: on a terminal one over the other, else one below."""
    if not console.is_terminal:
        while True:
            console.print(View(polls.next()))
            console.print()
            console.file.flush()
            if rest():
                return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(View(polls.next()), refresh=True)
            if rest():
                return


class _Stop:
    """Ctrl-C and SIGTERM as a mark that is looked at between frames.

    As an exception they could come up in a place that swallows it, such as a finalizer, and nothing would end.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: list[tuple[signal.Signals, Any]] = []

    def __enter__(self) -> Self:
        for which in (signal.SIGINT, signal.SIGTERM):
            self._before.append((which, signal.signal(which, self._mark)))
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        for which, handler in self._before:
            signal.signal(which, handler)

    def _mark(self, *_: object) -> None:
        self._came = True

    def within(self, seconds: float) -> bool:
        """Whether one came by then; says so at once."""
        end = clock.monotonic() + seconds
        while not self._came and (left := end - clock.monotonic()) > 0:
            _never.wait(min(left, _LOOK_S))
        return self._came


def _time_of_day() -> str:
    return datetime.fromtimestamp(clock.wall(), UTC).astimezone().strftime("%H:%M:%S")


def _interval(text: str) -> float:
    return max(_SHORTEST_S, parse_duration(text))
