"""An emulated engine that is not well."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from gateway import clock
from gateway.sim.fault import Fault
from gateway.sim.serve import EmulatedEngine, start_emulated
from tests.sim.waiting import until


@pytest.fixture
async def engine() -> AsyncIterator[EmulatedEngine]:
    async with start_emulated("rtx-pro-6000", speed=10, admin=True) as running:
        yield running


async def completion(client: aiohttp.ClientSession, engine: EmulatedEngine, tokens: int, stream: bool = False) -> str:
    body = {"prompt": "x", "max_tokens": tokens, "ignore_eos": True, "stream": stream}
    async with client.post(engine.url + "/v1/completions", json=body) as response:
        return await response.text()


async def test_a_slow_engine_takes_that_many_times_as_long(
    engine: EmulatedEngine, client: aiohttp.ClientSession
) -> None:
    async def seconds() -> float:
        start = clock.monotonic()
        await completion(client, engine, 200)
        return clock.monotonic() - start

    healthy = await seconds()
    await engine.break_down(Fault(slow_decode=4.0))
    assert await seconds() > 2.5 * healthy


async def test_a_hung_engine_is_silent_but_looks_healthy(engine: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    await engine.break_down(Fault(hang=True))
    request = asyncio.ensure_future(completion(client, engine, 3))
    await until(lambda: engine.service.driver.in_flight)
    async with client.get(engine.url + "/health") as response:
        assert response.status == 200
    await asyncio.sleep(0.1)
    assert not request.done()
    await engine.break_down(Fault())
    assert '"completion_tokens":3' in await asyncio.wait_for(request, 5)


async def test_an_engine_that_hangs_in_the_middle_goes_on_where_it_was(
    engine: EmulatedEngine, client: aiohttp.ClientSession
) -> None:
    request = asyncio.ensure_future(completion(client, engine, 400))
    await until(lambda: engine.stats.counters.generated_tokens >= 10)
    await engine.break_down(Fault(hang=True))
    made = engine.stats.counters.generated_tokens
    await asyncio.sleep(0.1)
    assert engine.stats.counters.generated_tokens == made
    await engine.break_down(Fault())
    assert '"completion_tokens":400' in await asyncio.wait_for(request, 10)


async def test_a_stream_is_cut_in_the_middle(engine: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    await engine.break_down(Fault(cut_after_tokens=5))
    body = {"prompt": "x", "max_tokens": 50, "ignore_eos": True, "stream": True}
    async with client.post(engine.url + "/v1/completions", json=body) as response:
        with pytest.raises(aiohttp.ClientError):
            await response.read()
    assert engine.stats.counters.cut_by_length == 0
    await until(lambda: not engine.stats.running)
    await engine.break_down(Fault())
    assert "[DONE]" in await completion(client, engine, 50, stream=True)


async def test_an_engine_that_refuses_finishes_what_it_has(
    engine: EmulatedEngine, client: aiohttp.ClientSession
) -> None:
    running = asyncio.ensure_future(completion(client, engine, 400))
    await until(lambda: engine.stats.running)
    await engine.break_down(Fault(refuse=True))
    async with aiohttp.ClientSession() as fresh:
        with pytest.raises(aiohttp.ClientConnectorError):
            await fresh.get(engine.url + "/health")
    assert '"completion_tokens":400' in await running
    with pytest.raises(aiohttp.ClientError):
        await completion(client, engine, 1)  # over the connection that was kept
    await engine.break_down(Fault())
    assert '"completion_tokens":1' in await completion(client, engine, 1)


async def test_a_crash_resets_everything_and_loses_the_cache(
    engine: EmulatedEngine, client: aiohttp.ClientSession
) -> None:
    url = engine.url
    running = asyncio.ensure_future(completion(client, engine, 4000, stream=True))
    await until(lambda: engine.stats.counters.generated_tokens)
    await engine.break_down(Fault(crash=True))
    with pytest.raises(aiohttp.ClientError):
        await running
    with pytest.raises(aiohttp.ClientConnectorError):
        await client.get(url + "/health")
    await engine.break_down(Fault())
    assert engine.url == url
    assert '"completion_tokens":2' in await completion(client, engine, 2)
    assert engine.stats.counters.generated_tokens == 2


async def test_faults_by_the_admin_route(engine: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    async with client.post(engine.url + "/sim/fault", json={"slow_prefill": 2.5, "cut_after_tokens": 9}) as response:
        assert response.status == 200
    assert engine.service.fault == Fault(slow_prefill=2.5, cut_after_tokens=9)
    async with client.post(engine.url + "/sim/fault", json={"hang": "very"}) as response:
        assert response.status == 400
    async with client.post(engine.url + "/sim/fault") as response:
        assert response.status == 200
    assert engine.service.fault == Fault()


async def test_without_admin_there_is_no_such_route(tiny: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    async with client.post(tiny.url + "/sim/fault", json={"hang": True}) as response:
        assert (response.status, await response.json()) == (404, {"detail": "Not Found"})
