"""`kvgate serve FILE`: run the gateway until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

import uvloop

from gateway.cli.banner import show_banner
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
        description="Runs the gateway. SIGHUP applies a changed file, all of it or nothing; SIGTERM or Ctrl-C lets running "
        "answers end (server.drain) and stops; a second one stops at once.",
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
            print(f"kvgate: {error.message}", file=sys.stderr)
            return 1
    return 0


async def _serve(path: Path, loaded: Loaded, log: Log) -> None:
    app = Application(loaded, lambda: load(path), log=log)
    stop = asyncio.Event()
    try:
        await app.start()
        show_banner(app, loaded)
        drain = Drain(
            DrainTimes(settle=min(SETTLE, loaded.settings.server.drain), limit=loaded.settings.server.drain),
            not_ready=app.not_ready,
            stop_accepting=app.stop_accepting,
            running=lambda: app.handler.running,
            cut=app.handler.cut,
            cleanup=app.close,
        )
        _on_signals(app, stop, drain)
        await stop.wait()
        await drain.run()
    finally:
        await app.close()


def _on_signals(app: Application, stop: asyncio.Event, drain: Drain) -> None:
    loop = asyncio.get_running_loop()
    reloads: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        try:
            await app.reload()
        except ConfigError as error:
            # Already logged; the terminal gets every problem with its line.
            print(f"kvgate: not reloaded: {error.message}", file=sys.stderr)

    def on_hangup() -> None:
        task = loop.create_task(reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    def on_stop() -> None:
        if stop.is_set():
            drain.hurry()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_stop)
    loop.add_signal_handler(signal.SIGHUP, on_hangup)
