"""`kvgate demo`: two real llama.cpp servers and an emulated large device behind one URL, shown step by step."""

from __future__ import annotations

import argparse
import asyncio
import signal
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from rich.console import Console
from rich.text import Text

from gateway import clock
from gateway.cli.demo_farewell import Farewell
from gateway.cli.demo_fleet import BIG_MODEL, REAL_MODEL, Fleet, bring_up
from gateway.cli.demo_screen import Outcome, Screen
from gateway.cli.terminal import Terminal
from gateway.errors import GatewayError
from gateway.local.steps import STEPS
from gateway.local.tour import StepFailed, Tour

__all__ = ["add_parser", "run", "walk"]

_ABOUT = (
    "One OpenAI-compatible URL in front of unlike engines: two real llama.cpp servers with a real model, "
    f"{REAL_MODEL} (one has one slot of 512 tokens, the other two of 2,048), and an emulated vLLM on a large device."
)
_REQUEST_S = 600.0
"""Seconds that one request may take; a step fails by what it promises, not by the speed of the machine."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `demo` to the command line."""
    parser = subparsers.add_parser(
        "demo",
        help="answer a real chat from real engines on this machine",
        description="Starts two real llama.cpp servers with a real small model and one emulated vLLM backend, puts "
        "kvgate in front, shows what it does, and stays up for you to try.",
    )
    parser.add_argument("--once", action="store_true", help="run the tour and exit; non-zero if a step did not hold")
    parser.add_argument(
        "--port", type=int, default=8080, help="port of the gateway (default 8080, another one if it is taken)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo. Exit status 0, 1 when a step did not hold or something did not start, 130 when interrupted."""
    console = Terminal()
    screen = Screen(console, len(STEPS))
    try:
        return asyncio.run(_demo(console, screen, args.port, once=args.once))
    except GatewayError as error:
        screen.quiet()
        console.print(Text(error.message, "red"))
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        screen.quiet()
        console.print("\nStopped before its end.")
        return 130


async def _demo(console: Console, screen: Screen, port: int, *, once: bool) -> int:
    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    if this is not None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, this.cancel)
    screen.opening(_ABOUT)
    async with AsyncExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="kvgate-demo-", ignore_cleanup_errors=True))
        )
        fleet = await bring_up(stack, folder, port, screen.phase)
        if not fleet.url.endswith(f":{port}"):
            screen.quiet()
            console.print(f"Port {port} is taken; kvgate listens on {fleet.url.rpartition(':')[2]}.")
        timeout = aiohttp.ClientTimeout(total=_REQUEST_S)
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
        tour = Tour(fleet.url, fleet.admin, REAL_MODEL, BIG_MODEL, fleet.engines, http, screen)
        held = await walk(screen, tour)
        if once:
            return 0 if held else 1
        Farewell(fleet.url, fleet.admin, REAL_MODEL, BIG_MODEL, tour.decision, fleet.file).show(console)
        return await _stay(console, fleet)


async def walk(screen: Screen, tour: Tour) -> bool:
    """Show every step; True when all of them held."""
    outcomes: list[Outcome] = []
    for step in STEPS:
        screen.heading(step.title)
        started = clock.monotonic()
        try:
            said, held = await step.run(tour), True
        except StepFailed as error:
            said, held = str(error), False
        except Exception as error:  # whatever it is, the tour goes on and says so
            said, held = f"{type(error).__name__}: {error}", False
        screen.result(held, said)
        outcomes.append(Outcome(step.title, held, clock.monotonic() - started))
    screen.summary(outcomes)
    return all(outcome.held for outcome in outcomes)


async def _stay(console: Console, fleet: Fleet) -> int:
    """Until somebody ends it: 0; 1 when the gateway ends by itself."""
    try:
        await fleet.gateway.ended()
    except asyncio.CancelledError:
        console.print("\nStopped.")
        return 0
    console.print(Text(f"The gateway has ended; the end of its log:\n{fleet.gateway.last_lines()}", "red"))
    return 1
