"""What tests of the running application share: gateways held to their promises, and a loop that may not block."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster, blockbuster_ctx

from gateway.telemetry.log import Log
from tests.shell.engine_double import EngineDouble
from tests.shell.running import Lines, Running, backend, config

__all__ = ["Start", "start", "unblocked"]

Start = Callable[..., Awaitable[Running]]


@pytest.fixture(autouse=True)
def unblocked() -> Iterator[BlockBuster]:
    """A call of ours that would block the event loop raises where it is made."""
    with blockbuster_ctx("gateway") as blocker:
        yield blocker


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts gateways: `await start({"b1": vllm(...)}, rest="queue: ...", b1={"running": "2"})`.

    Afterwards every one of them must have nothing left of any request, and the loop no task and no complaint.
    """
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
    before = asyncio.all_tasks()
    gateways: list[Running] = []
    async with contextlib.AsyncExitStack() as stack:

        async def begin(
            engines: dict[str, EngineDouble],
            *,
            text: str | None = None,
            rest: str = "",
            server: str = "",
            up: bool = True,
            **more: dict[str, str],
        ) -> Running:
            for engine in engines.values():
                if engine._server is None:
                    await stack.enter_async_context(engine)
            lines = [backend(n, e.url, e.flavour, **more.get(n, {})) for n, e in engines.items()]
            sink = Lines()
            log = Log(level="debug", sink=sink).open()
            stack.push_async_callback(asyncio.to_thread, log.close)
            file = tmp_path / f"gateway{len(gateways)}.yaml"
            await asyncio.to_thread(file.write_text, text or config(*lines, rest=rest, server=server))
            gateway = await Running.begin(file, log, sink)
            gateways.append(gateway)
            stack.push_async_callback(gateway.end)
            if up:
                await gateway.up(*engines)
            return gateway

        yield begin
        for gateway in gateways:
            if not gateway.app._closed:
                await gateway.nothing_left()
            traces = [line["trace"] for line in await gateway.log_lines() if "trace" in line]
            assert not traces, traces
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert asyncio.all_tasks() - before - {asyncio.current_task()} == set()
    assert faults == []
