from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import uvloop

from gateway.relay import Call, Hooks, Limits, Meter, Pool, TimerWheel, Whole, relay_bytes, relay_stream, relay_whole
from gateway.wire.chat_stream import ChatStream
from tests.relay.fake_client import MemoryClient
from tests.relay.fake_engine import FakeEngine, Script

INF = float("inf")


class FakeClock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Rig:
    """A fake engine, a pool before it, and a client that remembers."""

    def __init__(self, engine: FakeEngine, **pool: Any) -> None:
        self.engine = engine
        self.clock = FakeClock()
        self.wheel = TimerWheel(clock=self.clock)
        self.pool = Pool(pool.pop("url", engine.url), wheel=self.wheel, **pool)
        self.down = MemoryClient()
        self.meter = Meter(self.clock)
        self.view = ChatStream("chat")
        self.limits = Limits(2.0, 30.0, 10.0, 5.0, INF, 1 << 20)
        self.hooks = Hooks()

    def call(self, body: bytes = b"{}", **rest: Any) -> Call:
        return Call("POST", "/v1/chat/completions", self.pool.authority, body=body, **rest)

    async def stream(self, body: bytes = b"{}") -> None:
        await relay_stream(
            self.pool, self.call(body), self.down, self.view, self.meter, self.limits, self.wheel, self.hooks
        )

    async def whole(self, *rest: Any, **more: Any) -> Whole:
        return await relay_whole(self.pool, self.call(), self.limits, self.meter, self.wheel, *rest, **more)

    async def bytes(self) -> None:
        await relay_bytes(self.pool, self.call(), self.down, self.meter, self.limits, self.wheel)

    def again(self) -> None:
        """A new client with a new request."""
        self.down, self.meter, self.view = MemoryClient(), Meter(self.clock), ChatStream("chat")

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let the loop run until something is true."""
        for _ in range(5000):
            if condition():
                return
            await asyncio.sleep(0.001)
        raise TimeoutError

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        self.wheel.advance()


MakeRig = Callable[..., Awaitable[Rig]]


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Every test here runs on both loops: their transports pause, close and fail differently."""
    return {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def make_rig() -> AsyncIterator[MakeRig]:
    """Makes rigs; afterwards holds them to having left nothing behind."""
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
    before = asyncio.all_tasks()
    rigs: list[Rig] = []

    async def make(script: Script | list[Script], *, engine: dict[str, Any] | None = None, **pool: Any) -> Rig:
        fake = await FakeEngine(script, **(engine or {})).__aenter__()
        rig = Rig(fake, **pool)
        rigs.append(rig)
        return rig

    yield make
    for rig in rigs:
        assert rig.pool.open_connections == rig.pool.idle_connections
        rig.pool.close()
        await rig.pool.wait_closed()
        assert rig.pool.open_connections == 0
        assert len(rig.wheel) == 0
        assert rig.down.on_drain is None
        await rig.engine.__aexit__()
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()
    assert asyncio.all_tasks() - before - {asyncio.current_task()} == set()
    assert faults == []
