"""Cancelled at any await, the engine's socket closes at once and nothing is left behind."""

from __future__ import annotations

import asyncio
import socket

import pytest

from gateway.relay import relay_stream
from tests.relay.conftest import MakeRig, Rig
from tests.relay.fake_engine import (
    DONE,
    FINISH,
    ROLE,
    STREAM_HEAD,
    Request,
    Wire,
    chunk,
    json_answer,
    raw,
    silent,
    sse,
    token,
)


async def cancel(running: asyncio.Task[object]) -> None:
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_while_the_engine_is_silent(make_rig: MakeRig) -> None:
    rig = await make_rig(silent())
    running = asyncio.create_task(rig.stream())
    await rig.engine.until(lambda: bool(rig.engine.requests))
    await cancel(running)
    assert rig.pool.open_connections == 0
    await rig.engine.left(1.0)
    assert not rig.down.started


async def test_in_the_middle_of_a_stream(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(*[token(str(n)) for n in range(5)], then="silent", end=False))
    running = asyncio.create_task(rig.stream())
    await rig.down.until(lambda: rig.meter.tokens == 5)
    await cancel(running)
    assert rig.pool.open_connections == 0
    await rig.engine.left(1.0)


async def test_while_the_client_is_full(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(*[token("x" * 9000) for _ in range(1000)]))
    rig.down.full = True
    running = asyncio.create_task(rig.stream())
    await rig.down.until(lambda: bool(rig.down.writes))
    await cancel(running)
    assert rig.pool.open_connections == 0
    await rig.engine.left(1.0)


async def test_while_connecting(make_rig: MakeRig) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(sock.getsockname())
        rig = await make_rig(silent(), url=f"http://127.0.0.1:{sock.getsockname()[1]}")
        running = asyncio.create_task(rig.stream())
        await asyncio.sleep(0.02)
        assert rig.pool.open_connections == 1
        await cancel(running)
        assert rig.pool.open_connections == 0
        for filler in fillers:
            filler.close()


async def test_while_waiting_for_a_place(make_rig: MakeRig) -> None:
    rig = await make_rig(silent(), limit=1)
    first = asyncio.create_task(rig.whole())
    second = asyncio.create_task(rig.whole())
    await rig.engine.until(lambda: bool(rig.engine.requests))
    await cancel(second)
    await cancel(first)
    assert len(rig.engine.requests) == 1


async def test_while_the_body_is_sent(make_rig: MakeRig) -> None:
    look = asyncio.Event()

    async def script(_request: Request, wire: Wire) -> None:
        await look.wait()
        await wire.gone()

    rig = await make_rig(script, engine={"read_body": False})
    running = asyncio.create_task(rig.stream(b"x" * (32 << 20)))
    await rig.engine.until(lambda: bool(rig.engine.requests))
    await cancel(running)
    look.set()
    await rig.engine.left(1.0)


async def test_collected_and_raw_answers(make_rig: MakeRig) -> None:
    rig = await make_rig(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", then="silent"))
    for start in (rig.whole, rig.bytes):
        rig.again()
        running = asyncio.create_task(start())
        await rig.until(lambda: rig.meter.bytes == 3)
        await cancel(running)
        assert rig.pool.open_connections == 0
    await rig.engine.left(1.0)


async def settle(rig: Rig, steps: int) -> None:
    """Start a stream and cancel it after so many turns of the loop."""
    running = asyncio.create_task(rig.stream())
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("kept", [False, True])
async def test_after_any_number_of_turns_of_the_loop(make_rig: MakeRig, kept: bool) -> None:
    rig = await make_rig(sse(ROLE, token("a"), token("b"), FINISH, DONE))
    for steps in range(60):
        rig.again()
        if kept and not rig.pool.idle_connections:
            await rig.stream()
            rig.again()
        await settle(rig, steps)
        assert rig.pool.open_connections == rig.pool.idle_connections
        assert rig.down.on_drain is None
        if not kept:
            rig.pass_time(5.0)  # nothing is kept that long
            assert rig.pool.open_connections == 0


async def test_a_thousand_exchanges_leave_nothing(make_rig: MakeRig) -> None:
    """A third ends well, a third breaks, a third is cancelled; forty at a time."""
    turn = 0

    async def script(request: Request, wire: Wire) -> None:
        nonlocal turn
        turn += 1
        if turn % 3 == 0:
            await sse(token("a"), FINISH, DONE)(request, wire)
        elif turn % 3 == 1:
            await wire.send(STREAM_HEAD, chunk(token("a")))
            wire.reset()
        else:
            await json_answer({}, 500)(request, wire)

    rig = await make_rig(script, limit=20)

    async def one(number: int) -> None:
        other = Rig(rig.engine)
        other.pool, other.wheel = rig.pool, rig.wheel
        running = asyncio.create_task(
            relay_stream(rig.pool, rig.call(), other.down, other.view, other.meter, rig.limits, rig.wheel)
        )
        if number % 3 == 0:
            await asyncio.sleep(0.0005 * (number % 11))
            running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    for block in range(25):
        await asyncio.gather(*(one(block * 40 + number) for number in range(40)))
    assert rig.pool.open_connections == rig.pool.idle_connections
    await rig.engine.until(lambda: rig.engine.open == rig.pool.idle_connections)
