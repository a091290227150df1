from __future__ import annotations

import asyncio

import pytest

from gateway import clock
from tests.relay.fake_engine import json_answer, raw, silent
from tests.shell.engine_double import EngineDouble, llama_cpp, says, vllm, vllm_metrics
from tests.shell.fixtures import Start
from tests.shell.running import Running


async def gone_soon(engine: EngineDouble, seconds: float = 1.0) -> None:
    """The engine sees its connections close."""
    await engine.quiet(seconds)


async def test_x1_clients_that_left_the_queue_are_never_sent(start: Start) -> None:
    free = asyncio.Event()
    engine = vllm(says("a", "b", until=free))
    gateway = await start({"b1": engine}, b1={"running": "1"})
    first = await gateway.begin_chat("first", stream=True)
    await engine.asked_for(1)
    waiting = [await gateway.begin_chat(f"leaves {n}", stream=True) for n in range(5)]
    await gateway.until(lambda: gateway.queued == 5)
    for client in waiting:
        client.close()
    await gateway.until(lambda: gateway.queued == 0, 1)
    last = await gateway.begin_chat("last", stream=True)
    await gateway.until(lambda: gateway.queued == 1)
    free.set()
    assert (await first.reply()).complete
    assert (await last.reply()).complete
    assert [engine.body(n)["messages"][0]["content"] for n in range(len(engine.asked))] == ["first", "last"]
    assert await gateway.value('kvgate_client_closed_total{model="tiny",stage="queued"}') == 5


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("make", [vllm, llama_cpp])
async def test_x2_a_client_that_leaves_in_prefill_ends_the_engines_request(
    start: Start, make: type, stream: bool
) -> None:
    engine = make(silent(), model="m")
    gateway = await start({"b1": engine})
    client = await gateway.begin_chat(model="m", stream=stream)
    await engine.asked_for(1)
    client.close()
    await gone_soon(engine)
    await gateway.idle()
    assert await gateway.value('kvgate_client_closed_total{model="m",stage="prefill"}') == 1


async def test_x2_a_client_that_leaves_while_the_connection_is_made_is_not_waited_for(start: Start) -> None:
    engine = vllm()
    gateway = await start({"b1": engine}, b1={"timeouts": "{connect: 30s}"})
    upstream = gateway.app.switchboard["b1"]
    upstream.pool._limit = 0  # a full pool: the request waits for a connection
    client = await gateway.begin_chat()
    await gateway.until(lambda: gateway.running == 1)
    client.close()
    await gateway.idle(1)
    upstream.pool._limit = 1024


@pytest.mark.parametrize("make", [vllm, llama_cpp])
async def test_x3_a_client_that_leaves_in_the_middle_of_a_stream_frees_everything_within_a_second(
    start: Start, make: type
) -> None:
    engine = make(says(*["t"] * 100, gap=0.05), model="m")
    gateway = await start({"b1": engine})
    client = await gateway.begin_chat(model="m", stream=True)
    await client.head()
    for _ in range(5):
        await client.chunk()
    client.close()
    await gone_soon(engine)
    await gateway.idle(1)
    (line,) = await gateway.access()
    assert (line["status"], line["outcome"]) == (499, "client_closed")


@pytest.mark.parametrize("make", [vllm, llama_cpp])
async def test_x4_a_client_that_leaves_before_a_whole_answer_frees_everything_within_a_second(
    start: Start, make: type
) -> None:
    engine = make(says(*["t"] * 100, gap=0.05), model="m")
    gateway = await start({"b1": engine})
    client = await gateway.begin_chat(model="m")
    await engine.asked_for(1)
    await asyncio.sleep(0.15)
    client.close()
    if make is llama_cpp:
        assert engine.body()["stream"] is True  # else it would not notice
        await gone_soon(engine)
    await gateway.until(lambda: gateway.app.switchboard["b1"].pool.open_connections == 0, 1)
    await gateway.idle(3)
    engine.now_plays(says("ok"))
    assert (await gateway.chat(model="m")).status == 200


Fault = str
FAULTS: tuple[Fault, ...] = (
    "bad JSON", "unknown model", "server error", "time-out", "cancel in queue", "cancel in stream", "cancel at the end",
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
async def test_x6_fifty_of_any_kind_of_failure_leave_every_place_free(start: Start, fault: Fault) -> None:
    engine = vllm(says("ok"))
    gateway = await start(
        {"b1": engine},
        b1={"running": "4", "timeouts": "{first_token: 50ms}"},
        rest="health: {probe: 200ms, breaker: {failures: 1000}}\nretry: {attempts: 0}",
    )
    for _ in range(10):
        await asyncio.gather(*(suffer(gateway, engine, fault) for _ in range(5)))
    await gateway.idle()
    free = asyncio.Event()
    engine.now_plays(says("a", "b", until=free))
    already = len(engine.asked)
    clients = [await gateway.begin_chat(stream=True) for _ in range(4)]
    await engine.asked_for(already + 4)
    assert gateway.queued == 0
    free.set()
    for client in clients:
        assert (await client.reply()).complete


async def suffer(gateway: Running, engine: EngineDouble, fault: Fault) -> None:
    """One request that ends in this fault."""
    if fault == "bad JSON":
        assert (await gateway.ask(b"{")).status == 400
    elif fault == "unknown model":
        assert (await gateway.chat(model="nobody")).status == 404
    elif fault == "server error":
        engine.now_plays(json_answer({"error": {"message": "x", "code": 500}}, 500))
        assert (await gateway.chat()).status == 502
    elif fault == "time-out":
        engine.now_plays(silent())
        assert (await gateway.chat(stream=True)).status == 504
    elif fault == "cancel in queue":
        engine.now_plays(says("a", "b", gap=0.02))
        client = await gateway.begin_chat(stream=True)
        await asyncio.sleep(0.005)
        client.close()
    elif fault == "cancel in stream":
        engine.now_plays(says("a", "b", "c", gap=0.05))
        client = await gateway.begin_chat(stream=True)
        await client.head()
        await client.chunk()
        client.close()
    else:
        engine.now_plays(says("a"))
        client = await gateway.begin_chat(stream=True)
        await client.head()
        while b"[DONE]" not in await client.chunk():
            pass
        client.close()


async def test_x6_a_refused_request_is_not_charged_to_its_key(start: Start) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine}, rest="auth: {keys: [{name: k, key: secret-key-1, limits: {running: 1}}]}")
    auth = {"authorization": "Bearer secret-key-1"}
    for body in (b"{", b'{"model":"nobody","messages":[{"role":"user","content":"x"}]}') * 10:
        assert (await gateway.ask(body, **auth)).status in (400, 404)
    body = b'{"model":"tiny","messages":[{"role":"user","content":"x"}]}'
    assert (await gateway.ask(body, **auth)).status == 200


async def test_x7_an_engine_that_goes_on_after_the_abort_keeps_the_place_until_it_says_otherwise(start: Start) -> None:
    engine = vllm(silent())
    gateway = await start({"b1": engine}, b1={"running": "1"}, rest="health: {probe: 500ms}")
    await gateway.until(lambda: gateway.app.roster["b1"].observer.load is not None)
    client = await gateway.begin_chat(stream=True)
    await engine.asked_for(1)
    engine.pages["/metrics"] = vllm_metrics(running=1)
    client.close()
    await gone_soon(engine)
    engine.now_plays(says("ok"))
    waits = asyncio.create_task(gateway.chat())
    await asyncio.sleep(1.6)
    assert len(engine.asked) == 1
    engine.pages["/metrics"] = vllm_metrics(running=0)
    began = clock.monotonic()
    assert (await waits).status == 200
    assert clock.monotonic() - began < 2


async def test_a_client_that_only_half_closes_still_gets_its_answer_or_an_end(start: Start) -> None:
    engine = vllm(says("a", "b", gap=0.05))
    gateway = await start({"b1": engine})
    client = await gateway.begin_chat(stream=True)
    await engine.asked_for(1)
    client.writer.write_eof()
    await client.reader.read()
    await gateway.idle()


async def test_a_client_that_leaves_during_its_body_leaves_nothing(start: Start) -> None:
    gateway = await start({"b1": vllm(raw())})
    client = await gateway.connect()
    await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
    await gateway.until(lambda: gateway.app.handler.running == 1)
    client.close()
    await gateway.idle(1)
