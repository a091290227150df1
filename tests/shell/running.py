"""The whole application in this process, between scripted engines and clients that see raw bytes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway import clock
from gateway.config.load import load
from gateway.core.snapshot import Health
from gateway.edge.app import Application
from gateway.telemetry.log import Log
from tests.edge.wire_client import Reply, WireClient, request

__all__ = ["Body", "Lines", "Running", "backend", "chat", "config", "events", "text_of"]

Body = dict[str, Any] | bytes
ZERO = re.compile(r"^(kvgate_(?:requests_running|requests_queued|kv_reserved_tokens)\{[^}]*\}) (\S+)$", re.MULTILINE)


def backend(name: str, url: str, engine: str = "vllm", **more: str) -> str:
    """One backend's line. The device is fast, so that predictions are short."""
    keys = {"name": name, "url": url, "engine": engine, "device": "rtx-pro-6000"} | more
    return "{" + ", ".join(f"{key}: {value}" for key, value in keys.items()) + "}"


def config(*backends: str, rest: str = "", server: str = "") -> str:
    """A file with these backends; ports are picked by the system. Probes and breakers are quick."""
    lines = ["server: {listen: 127.0.0.1:0, admin: 127.0.0.1:0" + (f", {server}" if server else "") + "}", "backends:"]
    lines += [f"  - {line}" for line in backends]
    if "health:" not in rest:
        lines.append("health: {probe: 200ms, breaker: {failures: 3, open: 500ms}}")
    return "\n".join([*lines, rest, ""])


class Lines:
    """A log in memory."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        pass


@dataclass
class Running:
    """A gateway that serves. `file` is what a reload reads."""

    app: Application
    log: Log
    lines: Lines
    file: Path
    clients: list[WireClient] = field(default_factory=list)

    @classmethod
    async def begin(cls, file: Path, log: Log, lines: Lines) -> Running:
        """Load the file and start."""
        loaded = await asyncio.to_thread(load, file)
        app = Application(loaded, lambda: load(file), log=log)
        await app.start()
        return cls(app, log, lines, file)

    @property
    def port(self) -> int:
        return int(self.app.address.rpartition(":")[2])

    @property
    def admin_port(self) -> int:
        return int(self.app.admin_address.rpartition(":")[2])

    # --- clients

    async def connect(self, *, admin: bool = False) -> WireClient:
        client = await WireClient.connect(self.admin_port if admin else self.port)
        self.clients.append(client)
        return client

    async def send(self, body: Body, path: str = "/v1/chat/completions", **headers: str) -> WireClient:
        """A client that has sent its request and read nothing."""
        client = await self.connect()
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        await client.send(request("POST", path, data, **headers))
        return client

    async def ask(self, body: Body, path: str = "/v1/chat/completions", **headers: str) -> Reply:
        """A request and its whole answer, on a connection of its own."""
        client = await self.send(body, path, **headers)
        try:
            return await client.reply()
        finally:
            client.close()

    async def chat(self, text: str = "hi", *, model: str = "tiny", **more: Any) -> Reply:
        return await self.ask(chat(text, model=model, **more))

    async def begin_chat(self, text: str = "hi", *, model: str = "tiny", **more: Any) -> WireClient:
        return await self.send(chat(text, model=model, **more))

    async def get(self, path: str, *, admin: bool = False) -> Reply:
        return await self._plain("GET", path, admin=admin)

    async def admin(self, path: str) -> Any:
        reply = await self.get(path, admin=True)
        assert reply.status == 200, reply.body
        return reply.json

    async def reload(self, text: str | None = None) -> Reply:
        """POST /admin/reload, after writing another file if one is given."""
        if text is not None:
            await asyncio.to_thread(self.file.write_text, text)
        return await self._plain("POST", "/admin/reload", admin=True)

    async def _plain(self, method: str, path: str, *, admin: bool) -> Reply:
        client = await self.connect(admin=admin)
        try:
            return await client.request(method, path)
        finally:
            client.close()

    # --- what it knows

    async def metrics(self) -> str:
        return (await self.get("/metrics", admin=True)).body.decode()

    async def value(self, series: str) -> float:
        """One series by its full name with labels; 0 when it isn't there."""
        for line in (await self.metrics()).splitlines():
            name, _, number = line.rpartition(" ")
            if name == series:
                return float(number)
        return 0.0

    async def access(self) -> list[dict[str, Any]]:
        """The lines of the access log."""
        return [line for line in await self.log_lines() if line.get("event") == "request"]

    async def log_lines(self) -> list[dict[str, Any]]:
        assert await asyncio.to_thread(self.log.flush)
        return [json.loads(line) for line in self.lines.data.splitlines()]

    def health(self, name: str) -> Health | None:
        view = self.app.dispatcher.leases.snapshot().view(name)
        return view.health if view is not None else None

    @property
    def running(self) -> int:
        """Sequences that the ledger counts, over all backends."""
        return sum(view.running for view in self.app.dispatcher.leases.snapshot().views)

    @property
    def queued(self) -> int:
        return sum(self.app.dispatcher.waiting().values())

    async def until(self, condition: Callable[[], bool], seconds: float = 5.0) -> None:
        """Let the loop run until something is true; TimeoutError otherwise."""
        end = clock.monotonic() + seconds
        while not condition():
            if clock.monotonic() > end:
                raise TimeoutError
            await asyncio.sleep(0.004)

    async def up(self, *names: str, seconds: float = 5.0) -> None:
        """Wait until these backends are in use."""
        await self.until(lambda: all(self.health(name) is Health.UP for name in names), seconds)

    async def idle(self, seconds: float = 5.0) -> None:
        """Wait until nothing runs, waits or lingers."""
        await self.until(lambda: not self.running and not self.queued and not self.app.handler.running, seconds)

    async def nothing_left(self) -> None:
        """Hold the gateway to its promise: whatever happened, every lease, place and socket has been given back."""
        for client in self.clients:
            client.close()
        await self.idle()
        gauges = dict(ZERO.findall(await self.metrics()))
        assert gauges
        assert all(float(value) == 0 for value in gauges.values()), gauges
        assert len(self.app.dispatcher.leases.store) == 0  # type: ignore[arg-type]
        for upstream in self.app.switchboard.values():
            assert upstream.pool.open_connections == upstream.pool.idle_connections
        assert self.app.server.unhandled == 0
        assert self.app.public.memory.held == 0

    async def end(self) -> None:
        for client in self.clients:
            client.close()
        await self.app.close()


def chat(text: str = "hi", *, model: str = "tiny", **more: Any) -> dict[str, Any]:
    """A chat request of one user message."""
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def events(body: bytes) -> list[Any]:
    """The data of an event stream's events, read as JSON but for [DONE]; comments left out."""
    found = []
    for block in body.split(b"\n\n"):
        lines = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
        if lines:
            data = b"\n".join(lines)
            found.append("[DONE]" if data == b"[DONE]" else json.loads(data))
    return found


def text_of(body: bytes) -> str:
    """The content that a chat stream delivered."""
    choices = [choice for event in events(body) if isinstance(event, dict) for choice in event.get("choices", ())]
    return "".join(choice.get("delta", {}).get("content") or choice.get("text") or "" for choice in choices)
