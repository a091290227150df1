from __future__ import annotations

import asyncio
import gc
import random

import psutil
import pytest

from gateway import clock
from tests.relay.fake_engine import json_answer, silent
from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import Running


def open_files(gateway: Running) -> int:
    """File descriptors, but for connections that are kept for the next request; both their ends are in this process."""
    kept = sum(upstream.pool.idle_connections for upstream in gateway.app.switchboard.values())
    return int(psutil.Process().num_fds()) - 2 * kept


@pytest.mark.slow
async def test_errors_and_cancels_leave_no_file_open(start: Start) -> None:
    engine = vllm(says("a", "b", gap=0.002))
    gateway = await start(
        {"b1": engine}, rest="health: {probe: 200ms, breaker: {failures: 100000}}\nretry: {attempts: 0}"
    )
    dice = random.Random(7)
    broken = json_answer({"error": {"message": "x", "code": 500}}, 500)

    async def one(gateway: Running) -> None:
        draw = dice.random()
        if draw < 0.3:
            engine.scripts_left.insert(0, broken)
            await gateway.chat()
        elif draw < 0.6:
            client = await gateway.begin_chat(stream=dice.random() < 0.5)
            await asyncio.sleep(dice.random() * 0.006)
            client.close()
        else:
            assert (await gateway.chat(stream=True)).status in (200, 502)

    await one(gateway)
    await gateway.idle()
    gc.collect()
    before = open_files(gateway)
    for _ in range(60):
        await asyncio.gather(*(one(gateway) for _ in range(10)))
    await gateway.idle()
    for client in gateway.clients:
        client.close()
    await asyncio.sleep(0.1)
    gc.collect()
    assert open_files(gateway) <= before + 10
    assert b"Unclosed" not in gateway.lines.data


async def test_a_hundred_requests_that_hang_on_one_backend_do_not_slow_the_other(start: Start) -> None:
    engines = {"b1": vllm(silent(), model="one"), "b2": vllm(says("ok"), model="two")}
    gateway = await start(engines)

    async def seconds() -> float:
        began = clock.monotonic()
        assert (await gateway.chat(model="two")).status == 200
        return clock.monotonic() - began

    alone = sorted([await seconds() for _ in range(20)])[10]
    hanging = [await gateway.begin_chat(f"{n}", model="one", stream=True) for n in range(100)]
    await gateway.until(lambda: gateway.running + gateway.queued == 100)
    beside = sorted([await seconds() for _ in range(20)])[10]
    assert beside < alone + 0.05
    for client in hanging:
        client.close()
    await gateway.idle(3)
