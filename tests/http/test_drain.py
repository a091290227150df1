from __future__ import annotations

import asyncio

from gateway import clock
from gateway.core.snapshot import Health
from gateway.edge.drain import Drain, DrainTimes
from tests.relay.fake_engine import ROLE, STREAM_HEAD, Request, Wire, chunk, token
from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import Running, events, text_of


def drain_of(gateway: Running, settle: float, limit: float) -> Drain:
    """As `serve` makes one of it when told to stop."""
    app = gateway.app
    return Drain(
        DrainTimes(settle=settle, limit=limit, farewell=1.0),
        not_ready=app.not_ready,
        stop_accepting=app.stop_accepting,
        running=lambda: app.handler.running,
        cut=app.handler.cut,
        cleanup=app.close,
    )


async def test_told_to_stop_it_is_not_ready_at_once_and_ends_after_its_last_stream(start: Start) -> None:
    gateway = await start({"b1": vllm(says(*"abcdefghij", gap=0.06))})
    client = await gateway.begin_chat(stream=True)
    await client.head()
    assert (await gateway.get("/health/ready")).status == 200
    stopping = asyncio.create_task(drain_of(gateway, settle=0.2, limit=10).run())
    await asyncio.sleep(0)
    ready = await gateway.get("/health/ready")
    assert ready.status == 503
    assert (await gateway.get("/health/live")).status == 200
    assert (await gateway.chat(stream=True)).status == 200  # still taken while load balancers look
    body = b""
    while data := await client.chunk():
        body += data
    ended = clock.monotonic()
    assert text_of(body) == "abcdefghij"
    assert await stopping == 0
    assert clock.monotonic() - ended < 1.5
    try:
        await gateway.connect()
    except OSError:
        return
    raise AssertionError("still listening")


async def test_what_runs_past_the_limit_ends_with_an_error_in_band(start: Start) -> None:
    async def never_ends(_request: Request, wire: Wire) -> None:
        await wire.send(STREAM_HEAD, chunk(ROLE), chunk(token("a")))
        await wire.gone()

    engine = vllm(never_ends)
    gateway = await start({"b1": engine}, b1={"running": "1"})
    client = await gateway.begin_chat(stream=True)
    await client.head()
    await client.chunk()
    waits = await gateway.begin_chat()
    await gateway.until(lambda: gateway.queued == 1)
    assert await drain_of(gateway, settle=0.0, limit=0.2).run() == 2
    tail = await client.reader.read()
    assert b"shutting_down" in tail
    assert b"[DONE]" not in tail
    assert not tail.endswith(b"0\r\n\r\n")
    assert (await waits.reply()).status == 503
    await engine.quiet()


async def test_readiness_does_not_hang_on_backends(start: Start) -> None:
    engine = vllm()
    gateway = await start({"b1": engine})
    await engine.__aexit__()
    await gateway.until(lambda: gateway.health("b1") is Health.DOWN)
    for admin in (False, True):
        assert (await gateway.get("/health/live", admin=admin)).status == 200
        assert (await gateway.get("/health/ready", admin=admin)).status == 200
    (row,) = (await gateway.admin("/admin/backends"))["backends"]
    assert row["state"] == "down"
    assert row["error"]


async def test_a_finished_stream_says_so(start: Start) -> None:
    gateway = await start({"b1": vllm(says("a"))})
    reply = await gateway.chat(stream=True)
    assert events(reply.body)[-1] == "[DONE]"
