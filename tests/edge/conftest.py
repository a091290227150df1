from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
import uvloop
from aiohttp import web

from gateway.edge.answers import answer_json
from gateway.edge.auth import Key, Keyring
from gateway.edge.cors import Cors
from gateway.edge.downstream import ClientDownstream
from gateway.edge.handler import Handler
from gateway.edge.limits import EdgeLimits
from gateway.edge.public import Public
from gateway.edge.server import EdgeServer
from gateway.errors import UnknownModel
from gateway.telemetry.log import AccessLog, Log
from gateway.wire.inbound import Client, Inbound
from gateway.wire.models import ModelEntry
from tests.edge.wire_client import WireClient

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
# Transports differ in when they pause, resume and close; what goes straight to them is tested on both.
ON_BOTH = ("test_streams.py", "test_bad_input.py")


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return LOOPS if item.path.name in ON_BOTH else {"asyncio": LOOPS["asyncio"]}


SECRET = "sk-test-RIGHTKEY-0001"

Serve = Callable[[Inbound, ClientDownstream], Awaitable[None]]


class FakeGateway:
    """Answers with what it was asked, or as `behave` says; remembers what reached it and what was cancelled."""

    def __init__(self) -> None:
        self.seen: list[Inbound] = []
        self.arrived = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.behave: Serve = self.echo
        self.is_ready = True
        self.ids = ["small", "org/name"]

    async def serve(self, inbound: Inbound, down: ClientDownstream) -> None:
        self.seen.append(inbound)
        self.arrived.set()
        try:
            await self.behave(inbound, down)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def echo(self, inbound: Inbound, down: ClientDownstream) -> None:
        body = json.dumps(
            {"surface": inbound.surface, "client": inbound.client.name, "bytes": len(inbound.body)}
        ).encode()
        down.start(200, (("content-type", "application/json"), ("x-kvgate-decision", "d1")), len(body))
        down.write(body)
        down.end()

    async def stored(self, client: Client, method: str, answer: str, action: str, down: ClientDownstream) -> None:
        answer_json(down, 200, [method, answer, action])

    def models(self, client: Client) -> list[ModelEntry]:
        return [self.entry(name) for name in self.ids]

    def model(self, client: Client, model: str) -> ModelEntry:
        if model not in self.ids:
            raise UnknownModel("no model of this name is served here", param="model")
        return self.entry(model)

    @staticmethod
    def entry(name: str) -> ModelEntry:
        return ModelEntry(
            name,
            created=1_800_000_000,
            window=8192,
            max_output=1024,
            abilities=frozenset(("tools",)),
            ready=name != "org/name",
        )

    def ready(self) -> bool:
        return self.is_ready


class Lines:
    """A log sink in memory."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        pass


@dataclass
class Door:
    """A running public port."""

    port: int
    gateway: FakeGateway
    handler: Handler
    public: Public
    server: EdgeServer
    log: Log
    lines: Lines
    clients: list[WireClient] = field(default_factory=list)

    async def connect(self) -> WireClient:
        client = await WireClient.connect(self.port)
        self.clients.append(client)
        return client

    def access(self) -> list[dict[str, object]]:
        assert self.log.flush()
        lines = [json.loads(line) for line in self.lines.data.splitlines()]
        return [line for line in lines if line.get("event") == "request"]


Opener = Callable[..., Awaitable[Door]]


@pytest.fixture
async def open_door() -> AsyncIterator[Opener]:
    async with contextlib.AsyncExitStack() as stack:

        async def opener(
            limits: EdgeLimits | None = None, *, keys: bool = False, origins: tuple[str, ...] = ()
        ) -> Door:
            limits = limits or EdgeLimits()
            lines = Lines()
            log = stack.enter_context(Log(level="debug", sink=lines))
            gateway = FakeGateway()
            client = Client("agents", models=frozenset(("small",)))
            cors = Cors(origins)
            public = Public(gateway, Keyring([Key(SECRET, client)] if keys else ()), limits, cors)
            handler = Handler(public, access=AccessLog(log), cors=cors)
            server = EdgeServer(handler, limits, on_parser_error=handler.refused_by_parser)
            runner = web.ServerRunner(server, shutdown_timeout=0.2)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            door = Door(runner.addresses[0][1], gateway, handler, public, server, log, lines)

            async def close_clients() -> None:
                for wire in door.clients:
                    wire.close()
                    with contextlib.suppress(OSError):
                        await wire.writer.wait_closed()

            stack.push_async_callback(close_clients)
            return door

        yield opener


@pytest.fixture
async def door(open_door: Opener) -> Door:
    return await open_door()


@pytest.fixture(autouse=True)
def _root_logger_restored() -> object:
    before = logging.getLogger().handlers[:]
    yield
    assert logging.getLogger().handlers == before
