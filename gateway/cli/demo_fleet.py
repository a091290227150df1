"""What `kvgate demo` runs: two llama.cpp servers, an emulated vLLM and the gateway, each a process of its own."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from gateway import clock
from gateway.cli.demo_farewell import shown_path
from gateway.errors import GatewayError
from gateway.local.child import Child
from gateway.local.launch import LlamaServer
from gateway.local.models import ENGINE_COMMAND, MODEL_COMMAND, NotInstalled, smollm2_path

__all__ = ["BIG_MODEL", "REAL_MODEL", "Fleet", "bring_up", "free_port", "require_parts", "write_file"]

REAL_MODEL = "SmolLM2-135M"
BIG_MODEL = "Qwen3-30B-A3B"

_FILE = """\
# What `kvgate demo` runs. The device numbers are those of one CPU core; kvgate corrects them as it watches.
server: {{listen: 127.0.0.1:{port}, admin: 127.0.0.1:{admin}}}
backends:
  - {{name: small, url: {small}, engine: llama.cpp, device: {{memory: 2GiB, bandwidth: 6GB/s, fp16: 0.06T}}}}
  - {{name: large, url: {large}, engine: llama.cpp, device: {{memory: 4GiB, bandwidth: 6GB/s, fp16: 0.06T}}}}
  - {{name: emulated, url: {emulated}, engine: vllm, device: rtx-pro-6000}}
queue: {{length: 100, wait: 300s}}
"""

_ENGINE_READY_S = 180.0
_READY_S = 120.0
"""Seconds; generous, for slow machines."""
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Fleet:
    """What runs: URLs without a trailing slash, the real engines by backend name, the gateway's process and file."""

    url: str
    admin: str
    engines: dict[str, LlamaServer]
    gateway: Child
    file: Path


async def bring_up(stack: AsyncExitStack, folder: Path, port: int, phase: Callable[[str], None]) -> Fleet:
    """Start everything; `stack` takes it down again. `port` is the gateway's, if it is free.

    Raises NotInstalled without llama.cpp's wheel or the model, GatewayError when something does not come up; then the
    message holds the end of its log.
    """
    model = require_parts()
    threads = max(1, min(4, (os.cpu_count() or 1) // 4))
    engines = {
        name: LlamaServer(
            model,
            REAL_MODEL,
            context=context,
            slots=slots,
            threads=threads,
            flags=("-b", str(batch)),
            log=folder / f"{name}.log",
            ready_s=_ENGINE_READY_S,
        )
        for name, context, slots, batch in (("small", 512, 1, 128), ("large", 4096, 2, 256))
    }
    for name, engine in engines.items():
        phase(f"starting llama.cpp server '{name}', loading {REAL_MODEL}")
        await stack.enter_async_context(engine)
    phase(f"starting an emulated vLLM with {BIG_MODEL}")
    emulated = free_port(0)
    arguments = ("--profile", "rtx-pro-6000", "--model", BIG_MODEL, "--port", str(emulated))
    await stack.enter_async_context(Child("gateway.sim", arguments, folder / "emulated.log"))
    public, admin = free_port(port), free_port(9090)
    urls = {name: engine.url for name, engine in engines.items()} | {"emulated": f"http://127.0.0.1:{emulated}"}
    file = write_file(folder / "gateway.yaml", public, admin, urls)
    phase("starting kvgate, which looks at its engines")
    gateway = Child("gateway.cli", ("serve", str(file)), folder / "gateway.log")
    await stack.enter_async_context(gateway)
    fleet = Fleet(f"http://127.0.0.1:{public}", f"http://127.0.0.1:{admin}", engines, gateway, file)
    await _ready(fleet, backends=len(urls))
    return fleet


def require_parts() -> Path:
    """Return the model's file; raises NotInstalled with the commands that bring whatever is missing."""
    model = smollm2_path()
    missing = [] if importlib.util.find_spec("xllamacpp") is not None else [ENGINE_COMMAND]
    if model is None:
        missing.append(MODEL_COMMAND)
    if missing or model is None:
        lines = "\n".join(f"  {shown_path(Path(sys.executable))} -m {command}" for command in missing)
        raise NotInstalled(f"The demo runs real engines, which are not installed yet. This brings them:\n{lines}")
    return model


def write_file(path: Path, port: int, admin: int, urls: dict[str, str]) -> Path:
    """Write the gateway's file; `urls` of the backends small, large and emulated."""
    path.write_text(_FILE.format(port=port, admin=admin, **urls), encoding="utf-8")
    return path


def free_port(wanted: int) -> int:
    """Return this loopback port if it can be had, else any other; raises GatewayError when there is none."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            # As a server would: connections of a run before that linger in TIME_WAIT don't count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                probe.listen()
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise GatewayError("no port on 127.0.0.1 is free")


async def _ready(fleet: Fleet, *, backends: int) -> None:
    """Wait until the gateway is up and has found every engine."""
    deadline = clock.monotonic() + _READY_S
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
        while clock.monotonic() < deadline and fleet.gateway.running:
            try:
                async with http.get(f"{fleet.admin}/admin/backends") as reply:
                    views = (await reply.json())["backends"]
                if sum(view["health"] == "up" for view in views) == backends:
                    return
            except (aiohttp.ClientError, TimeoutError, ValueError):
                pass  # not listening yet
            await asyncio.sleep(_LOOK_S)
    what = "did not find its engines in time" if fleet.gateway.running else "ended at its start"
    raise GatewayError(f"the gateway {what}; the end of its log:\n{fleet.gateway.last_lines()}")
