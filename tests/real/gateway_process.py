"""`kvgate serve FILE` as a process of its own, with what a test wants to know of it: gauges, open files, memory."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from gateway import clock

GAUGE = re.compile(
    r"^(kvgate_(?:requests_running|requests_queued|kv_reserved_tokens))(?:\{[^}]*\})? (\S+)$", re.MULTILINE
)


class GatewayProcess:
    """A running gateway: its URLs, and its insides as seen from outside."""

    def __init__(self, port: int, admin_port: int, process: asyncio.subprocess.Process, log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.admin = f"http://127.0.0.1:{admin_port}"
        self.process = process
        self.log = log
        self.system = psutil.Process(process.pid)

    async def admin_json(self, path: str) -> Any:
        async with aiohttp.ClientSession() as http, http.get(self.admin + path) as reply:
            return await reply.json()

    async def metrics(self) -> str:
        async with aiohttp.ClientSession() as http, http.get(self.admin + "/metrics") as reply:
            return await reply.text()

    async def gauges(self) -> dict[str, float]:
        """The gauges that must read zero when nothing runs, summed over labels."""
        sums: dict[str, float] = {}
        for name, value in GAUGE.findall(await self.metrics()):
            sums[name] = sums.get(name, 0.0) + float(value)
        return sums

    async def idle(self, within: float = 15.0) -> dict[str, float]:
        """Wait until all gauges are zero; returns the last reading, zero or not."""
        deadline = clock.monotonic() + within
        while True:
            gauges = await self.gauges()
            if (gauges and not any(gauges.values())) or clock.monotonic() > deadline:
                return gauges
            await asyncio.sleep(0.1)

    async def until_up(self, count: int, within: float = 20.0) -> None:
        """Wait until so many backends are in use."""
        deadline = clock.monotonic() + within
        while clock.monotonic() < deadline:
            try:
                views = await self.admin_json("/admin/backends")
                if sum(view["health"] in ("up", "trial") for view in views["backends"]) >= count:
                    return
            except (aiohttp.ClientError, ValueError):
                pass
            await asyncio.sleep(0.05)
        raise AssertionError(f"{count} backends are not up after {within} s:\n{self.log.read_text()[-2000:]}")

    def open_files(self) -> int:
        """File descriptors in use."""
        return int(self.system.num_fds())

    def memory(self) -> int:
        """Resident bytes."""
        return int(self.system.memory_info().rss)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def serving(
    folder: Path, backends: list[str], *, up: int | None = None, rest: str = ""
) -> AsyncIterator[GatewayProcess]:
    """Serve these backend lines (YAML flow maps) and yield once `up` of them (default: all) are in use."""
    port, admin = free_port(), free_port()
    file, log = folder / "gateway.yaml", folder / "gateway.log"
    lines = [f"server: {{listen: 127.0.0.1:{port}, admin: 127.0.0.1:{admin}}}", "backends:"]
    file.write_text("\n".join([*lines, *(f"  - {line}" for line in backends), rest, ""]))
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway.cli", "serve", str(file), stdout=output, stderr=output
        )
    gateway = GatewayProcess(port, admin, process, log)
    try:
        await gateway.until_up(len(backends) if up is None else up)
        yield gateway
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 15)
            except TimeoutError:
                process.kill()
                await process.wait()


def backend(name: str, url: str, **more: str) -> str:
    """One llama.cpp backend on a CPU core, as a line for `serving`."""
    device = "{memory: 2GiB, bandwidth: 6GB/s, fp16: 1T}"
    keys = {"name": name, "url": url, "engine": "llama.cpp", "device": device} | more
    return "{" + ", ".join(f"{key}: {value}" for key, value in keys.items()) + "}"
