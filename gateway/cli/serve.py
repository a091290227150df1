"""`kvgate serve FILE`: run the gateway until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import sys
from pathlib import Path

import uvloop

from gateway.cli.banner import show_banner
from gateway.cli.printable import printable
from gateway.config.load import Loaded, load
from gateway.edge.app import Application
from gateway.edge.drain import Drain, DrainTimes
from gateway.errors import ConfigError
from gateway.telemetry.log import Log

__all__ = ["add_parser", "run"]

SETTLE = 3.0
"""Seconds between "not ready" and a closed door: load balancers look every second or two."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `serve` to the command line."""
    parser = subparsers.add_parser(
        "serve",
        help="run the gateway",
        description="Runs the gateway. SIGHUP applies a changed file, all of it or nothing; SIGTERM or Ctrl-C lets "
        "running answers end (server.drain) and stops; a second one stops at once.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the YAML file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal; returns the exit status."""
    path: Path = args.file
    loaded = load(path)
    telemetry = loaded.settings.telemetry.log
    with Log(level=telemetry.level, format=telemetry.format) as log:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_serve(path, loaded, log))
        except ConfigError as error:
            print(printable(f"kvgate: {error.message}"), file=sys.stderr)
            return 1
    return 0


async def _serve(path: Path, loaded: Loaded, log: Log) -> None:
    app = Application(loaded, lambda: load(path), log=log)
    stops = _Stops()  # before anybody can read that it listens, and stop it
    try:
        await app.start()
        _settle_memory()
        show_banner(app, loaded)
        _reload_on_hangup(app, loaded)
        await _until_stopped(app, loaded, stops)
    finally:
        await app.close()


class _Stops:
    """The signals that end it: `first` is the first one, `hurry` is set by the next."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.first: asyncio.Future[signal.Signals] = loop.create_future()
        self.hurry = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._came, number)

    def _came(self, number: signal.Signals) -> None:
        if self.first.done():
            self.hurry.set()
        else:
            self.first.set_result(number)


async def _until_stopped(app: Application, loaded: Loaded, stops: _Stops) -> None:
    """Wait for a signal, then drain; the second signal ends the drain."""
    limit = loaded.settings.server.drain
    # Nobody who stops it by hand has a load balancer in front that must first see "not ready".
    settle = 0.0 if await stops.first is signal.SIGINT else min(SETTLE, limit)
    drain = Drain(
        DrainTimes(settle=settle, limit=limit),
        not_ready=app.not_ready,
        stop_accepting=app.stop_accepting,
        running=lambda: app.handler.running,
        cut=app.handler.cut,
        cleanup=app.close,
    )
    if app.handler.running and sys.stderr.isatty():
        many = "" if app.handler.running == 1 else "s"
        what = f"{app.handler.running} answer{many}"
        print(f"\nkvgate: waiting up to {limit:g} s for {what} to end; Ctrl-C again ends at once", file=sys.stderr)
    hurrying = asyncio.ensure_future(_hurry(drain, stops.hurry))
    try:
        await drain.run()
    finally:
        hurrying.cancel()


async def _hurry(drain: Drain, hurry: asyncio.Event) -> None:
    await hurry.wait()
    drain.hurry()


def _reload_on_hangup(app: Application, loaded: Loaded) -> None:
    loop = asyncio.get_running_loop()
    reloads: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        try:
            await app.reload()
        except ConfigError as error:
            # Already logged; a person at a terminal reads it better outside of JSON.
            if loaded.settings.telemetry.log.format == "json" and sys.stderr.isatty():
                print(printable(f"kvgate: not reloaded: {error.message}"), file=sys.stderr)

    def on_hangup() -> None:
        task = loop.create_task(reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGHUP, on_hangup)


def _settle_memory() -> None:
    """Leave what was made at the start out of every later garbage collection, and collect less often.

    A request makes some hundred short-lived objects that reference counting frees; cycles are rare.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
