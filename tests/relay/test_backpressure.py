from __future__ import annotations

import asyncio
import gc
import socket

import psutil
import pytest

from gateway.errors import ClientClosed
from gateway.relay import relay_stream
from tests.relay.conftest import MakeRig
from tests.relay.fake_client import SocketClient
from tests.relay.fake_engine import DONE, FINISH, STREAM_HEAD, Request, Wire, chunk, raw, sse, token


async def test_a_full_client_pauses_the_engine_and_a_drained_one_resumes_it(make_rig: MakeRig) -> None:
    big = token("x" * 100_000)
    sent: list[int] = []

    async def script(_request: Request, wire: Wire) -> None:
        await wire.send(STREAM_HEAD)
        for number in range(300):
            await wire.send(chunk(big))
            sent.append(number)
        await wire.send(chunk(FINISH), chunk(DONE), b"0\r\n\r\n")

    rig = await make_rig(script)
    rig.down.full = True
    running = asyncio.create_task(rig.stream())
    await rig.down.until(lambda: bool(rig.down.writes))
    await asyncio.sleep(0.1)
    assert len(rig.down.writes) == 1
    assert len(sent) < 200  # the rest of 30 MB stays with the engine
    rig.pass_time(4.0)
    rig.down.drain()
    await running
    assert rig.down.body == big * 300 + FINISH + DONE
    assert rig.down.ended


async def test_the_gap_limit_rests_while_the_client_is_full(make_rig: MakeRig) -> None:
    go = asyncio.Event()

    async def script(_request: Request, wire: Wire) -> None:
        await wire.send(STREAM_HEAD, chunk(token("a")))
        await go.wait()
        await wire.send(chunk(token("b") + FINISH), b"0\r\n\r\n")

    rig = await make_rig(script)
    rig.down.full = True
    rig.limits = type(rig.limits)(2.0, 30.0, 10.0, 100.0, float("inf"), 1)
    running = asyncio.create_task(rig.stream())
    await rig.down.until(lambda: bool(rig.down.writes))
    for _ in range(3):
        rig.pass_time(11.0)
    rig.down.drain()
    rig.pass_time(9.0)
    go.set()
    await running
    assert rig.down.ended


async def test_a_client_that_stays_full_is_gone(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(token("a"), token("b"), then="silent", end=False))
    rig.down.full = True
    running = asyncio.create_task(rig.stream())
    await rig.down.until(lambda: bool(rig.down.writes))
    rig.pass_time(4.9)
    assert not running.done()
    rig.pass_time(0.2)
    with pytest.raises(ClientClosed, match=r"for 5 s \(limit: write\)"):
        await running
    assert rig.down.aborted
    await rig.engine.left()


async def test_a_connection_that_was_paused_is_used_again(make_rig: MakeRig) -> None:
    rig = await make_rig(raw(STREAM_HEAD + chunk(token("a") + FINISH + DONE) + b"0\r\n\r\n"))
    rig.down.full = True
    await rig.stream()
    assert rig.down.ended
    rig.again()
    await rig.stream()
    assert rig.down.ended
    assert rig.engine.accepted == 1


async def test_a_client_that_does_not_read_costs_little_memory(make_rig: MakeRig) -> None:
    """Over real sockets: the engine has 30 MB, the client reads none of it."""
    big = chunk(token("x" * 60_000))
    pushed = 0

    async def script(_request: Request, wire: Wire) -> None:
        nonlocal pushed
        await wire.send(STREAM_HEAD)
        while pushed < 30_000_000:
            await wire.send(big)
            pushed += len(big)

    rig = await make_rig(script)
    loop = asyncio.get_running_loop()
    made: asyncio.Future[SocketClient] = loop.create_future()

    def client() -> SocketClient:
        down = SocketClient()
        made.set_result(down)
        return down

    listener = await loop.create_server(client, "127.0.0.1", 0)
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
    reader.setblocking(False)
    await loop.sock_connect(reader, listener.sockets[0].getsockname())
    down = await made
    gc.collect()
    before = psutil.Process().memory_info().rss
    running = asyncio.create_task(relay_stream(rig.pool, rig.call(), down, rig.view, rig.meter, rig.limits, rig.wheel))
    still = -1
    while still != pushed:
        still = pushed
        await asyncio.sleep(0.1)
    assert pushed < 25_000_000
    assert down.deepest < 1 << 20
    assert psutil.Process().memory_info().rss - before < 20 << 20
    rig.pass_time(5.1)
    with pytest.raises(ClientClosed):
        await running
    await rig.engine.left()
    await rig.until(lambda: down.closed)
    reader.close()
    listener.close()
    await listener.wait_closed()
