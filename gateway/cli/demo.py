"""`kvgate demo`: two real llama.cpp servers and an emulated large device behind one URL, shown step by step."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
from rich.console import Console
from rich.panel import Panel
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table

from gateway import clock
from gateway.errors import GatewayError
from gateway.local.launch import LlamaServer
from gateway.local.models import require_smollm2
from gateway.local.tour import STEPS, StepFailed, Tour

__all__ = ["add_parser", "run"]

REAL_MODEL = "SmolLM2-135M"
BIG_MODEL = "Qwen3-30B-A3B"

FILE = """\
# What `kvgate demo` runs. The device numbers are those of one CPU core; kvgate corrects them as it watches.
server: {{listen: 127.0.0.1:{port}, admin: 127.0.0.1:{admin}}}
backends:
  - {{name: small, url: {small}, engine: llama.cpp, device: {{memory: 2GiB, bandwidth: 6GB/s, fp16: 0.06T}}}}
  - {{name: large, url: {large}, engine: llama.cpp, device: {{memory: 4GiB, bandwidth: 6GB/s, fp16: 0.06T}}}}
  - {{name: emulated, url: {emulated}, engine: vllm, device: rtx-pro-6000}}
queue: {{length: 100, wait: 120s}}
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `demo` to the command line."""
    parser = subparsers.add_parser(
        "demo",
        help="answer a real chat from real engines on this machine",
        description="Starts two real llama.cpp servers with a real small model and one emulated vLLM backend, puts kvgate in "
        "front, shows what it does, and stays up for you to try.",
    )
    parser.add_argument("--once", action="store_true", help="run the tour and exit; non-zero if a step did not hold")
    parser.add_argument(
        "--port", type=int, default=8080, help="port of the gateway (default 8080, another one if it is taken)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo; returns the exit status."""
    console = Console()
    try:
        return asyncio.run(_demo(console, args.port, once=args.once))
    except GatewayError as error:
        console.print(f"[red]{error.message}[/red]")
        return 1
    except KeyboardInterrupt:
        console.print("\nStopped.")
        return 0


async def _demo(console: Console, port: int, *, once: bool) -> int:
    console.print(
        Panel(
            "kvgate puts [bold]one OpenAI-compatible URL[/bold] in front of unlike engines. Here: two real llama.cpp servers with "
            "a real 135M model (one with 512 tokens of context and one slot, one with 4,096 over two slots), and one emulated "
            "vLLM on a large device.",
            title="kvgate demo",
            border_style="cyan",
        )
    )
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kvgate-demo-")))
        tour, file = await _bring_up(console, stack, folder, port)
        held = await _walk(console, tour)
        if once:
            return 0 if held else 1
        _try_it(console, tour, file)
        await asyncio.Event().wait()
    return 0


async def _bring_up(console: Console, stack: AsyncExitStack, folder: Path, port: int) -> tuple[Tour, Path]:
    model = require_smollm2()
    engines = {
        "small": LlamaServer(model, REAL_MODEL, context=512, slots=1, flags=("-b", "128"), log=folder / "small.log"),
        "large": LlamaServer(model, REAL_MODEL, context=4096, slots=2, flags=("-b", "256"), log=folder / "large.log"),
    }
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting two llama.cpp servers and loading the model")
        for engine in engines.values():
            await stack.enter_async_context(engine)
        progress.update(task, description="starting an emulated vLLM backend")
        emulated = await stack.enter_async_context(_emulated(folder))
        progress.update(task, description="starting kvgate and letting it look at its engines")
        public, admin = _free(port), _free(9090)
        file = folder / "gateway.yaml"
        file.write_text(
            FILE.format(
                port=public, admin=admin, small=engines["small"].url, large=engines["large"].url, emulated=emulated
            )
        )
        await stack.enter_async_context(_gateway(file, folder / "gateway.log"))
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=120)))
        tour = Tour(
            url=f"http://127.0.0.1:{public}",
            admin=f"http://127.0.0.1:{admin}",
            real_model=REAL_MODEL,
            big_model=BIG_MODEL,
            engines=engines,
            http=http,
            say=console.print,
            token=lambda piece: console.print(
                piece, end="", style="green", highlight=False, markup=False, soft_wrap=True
            ),
        )
        await _ready(tour, backends=3, log=folder / "gateway.log")
    return tour, file


async def _walk(console: Console, tour: Tour) -> bool:
    """Show every step; True when all of them held."""
    rows: list[tuple[str, bool, float]] = []
    for number, step in enumerate(STEPS, start=1):
        console.print(f"\n[bold cyan]{number}/{len(STEPS)}[/bold cyan] [bold]{step.title}[/bold]")
        started = clock.monotonic()
        try:
            result, held = await step.run(tour), True
        except StepFailed as error:
            result, held = str(error), False
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            result, held = f"{type(error).__name__}: {error}", False
        seconds = clock.monotonic() - started
        mark = "[green]✓[/green]" if held else "[red]✗[/red]"
        console.print(f"\n  {mark} ", end="")
        console.print(result, style="" if held else "red", highlight=False, markup=False)
        rows.append((step.title, held, seconds))
    table = Table(title="\nThe tour", title_justify="left")
    table.add_column("step")
    table.add_column("held", justify="center")
    table.add_column("seconds", justify="right")
    for title, held, seconds in rows:
        table.add_row(title, "[green]yes[/green]" if held else "[red]no[/red]", f"{seconds:.1f}")
    console.print(table)
    return all(held for _, held, _ in rows)


def _try_it(console: Console, tour: Tour, file: Path) -> None:
    curl = (
        f"curl -N {tour.url}/v1/chat/completions -H 'Content-Type: application/json' \\\n"
        f'  -d \'{{"model": "{tour.real_model}", "stream": true, "max_tokens": 60,\n'
        '       "messages": [{"role": "user", "content": "What is a vacuum tube?"}]}\''
    )
    sdk = (
        "from openai import OpenAI  # pip install openai\n"
        f'client = OpenAI(base_url="{tour.url}/v1", api_key="unused")\n'
        f'answer = client.chat.completions.create(model="{tour.real_model}", max_tokens=60,\n'
        '    messages=[{"role": "user", "content": "What is a vacuum tube?"}])\n'
        "print(answer.choices[0].message.content)"
    )
    console.print("\n[bold]It stays up. Try it:[/bold]\n")
    console.print(Syntax(curl, "bash", background_color="default", word_wrap=True))
    console.print()
    console.print(Syntax(sdk, "python", background_color="default", word_wrap=True))
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row("models", f"{tour.url}/v1/models")
    table.add_row("metrics", f"{tour.admin}/metrics")
    table.add_row("backends", f"{tour.admin}/admin/backends")
    table.add_row("queue", f"{tour.admin}/admin/queue")
    table.add_row(
        "explain", f"kvgate explain --admin {tour.admin} ID      (ID: the x-kvgate-decision header, see curl -i)"
    )
    table.add_row("its file", str(file))
    console.print()
    console.print(table)
    console.print("\nCtrl-C stops everything.")


@asynccontextmanager
async def _emulated(folder: Path) -> AsyncIterator[str]:
    """An emulated vLLM as a process of its own; yields its URL."""
    port = _free(0)
    arguments = ("-m", "gateway.sim", "--profile", "rtx-pro-6000", "--model", BIG_MODEL, "--port", str(port))
    async with _process(arguments, folder / "emulated.log"):
        yield f"http://127.0.0.1:{port}"


@asynccontextmanager
async def _gateway(file: Path, log: Path) -> AsyncIterator[None]:
    """`kvgate serve FILE` as a process of its own, as a user would run it."""
    async with _process(("-m", "gateway.cli", "serve", str(file)), log):
        yield


@asynccontextmanager
async def _process(arguments: tuple[str, ...], log: Path) -> AsyncIterator[None]:
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=output, stderr=output)
    try:
        yield
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _ready(tour: Tour, *, backends: int, log: Path) -> None:
    """Wait until the gateway is up and has found every engine; raises GatewayError with its log's end when it doesn't."""
    deadline = clock.monotonic() + 30
    while clock.monotonic() < deadline:
        try:
            views = (await tour.admin_json("/admin/backends"))["backends"]
            if sum(view["health"] == "up" for view in views) == backends:
                return
        except (aiohttp.ClientError, ValueError):
            pass
        await asyncio.sleep(0.1)
    lines = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
    raise GatewayError(f"the gateway did not find its engines within 30 s:\n{lines}")


def _free(port: int) -> int:
    """This loopback port if it can be had, else any other."""
    for wanted in (port, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise GatewayError("no free port on 127.0.0.1")
