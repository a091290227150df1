"""A client that stays connected and reads nothing (known failure X5)."""

from __future__ import annotations

import asyncio
import gc
from functools import partial

import psutil
import pytest

from gateway.relay import switchboard
from gateway.relay.limits import Limits
from tests.relay.fake_engine import STREAM_HEAD, Request, Wire, chunk, token
from tests.shell.engine_double import vllm
from tests.shell.fixtures import Start

MB = 1_000_000


async def test_x5_a_client_that_reads_nothing_costs_little_memory_and_loses_its_place(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switchboard, "Limits", partial(Limits, write_s=1.5))  # half a minute otherwise
    big, pushed = chunk(token("x" * 100_000)), 0

    async def script(_request: Request, wire: Wire) -> None:
        nonlocal pushed
        await wire.send(STREAM_HEAD)
        while pushed < 200 * MB:
            await wire.send(big)
            pushed += len(big)

    engine = vllm(script)
    gateway = await start({"b1": engine}, b1={"running": "1"})
    gc.collect()
    before = psutil.Process().memory_info().rss
    client = await gateway.begin_chat(stream=True)
    await client.head()
    client.reader._transport.pause_reading()  # type: ignore[attr-defined]
    still = -1
    while still != pushed:
        still = pushed
        await asyncio.sleep(0.1)
    assert 0 < pushed < 100 * MB
    assert psutil.Process().memory_info().rss - before < 20 * MB
    await engine.quiet(10)
    await gateway.idle(3)
    (line,) = await gateway.access()
    assert line["outcome"] == "client_closed"
