from __future__ import annotations

import asyncio
import re

from gateway import clock
from tests.edge.wire_client import WireClient
from tests.http.test_context import prose
from tests.shell.engine_double import llama_cpp, page, says, vllm, vllm_metrics
from tests.shell.fixtures import Start


async def test_o1_two_run_three_wait_in_order_and_the_rest_is_refused_at_once(start: Start) -> None:
    engine = vllm(says("a", "b", gap=0.3))
    gateway = await start({"b1": engine}, b1={"running": "2"}, rest="queue: {length: 3, wait: 5s}")
    held = []
    for number in range(5):
        held.append(await gateway.begin_chat(f"number {number}", stream=True))
        await gateway.until(lambda n=number: len(engine.asked) + gateway.queued == n + 1)
    began = clock.monotonic()
    refused = await asyncio.gather(*(gateway.chat(f"number {n}") for n in range(5, 10)))
    assert clock.monotonic() - began < 0.2
    assert [reply.status for reply in refused] == [429] * 5
    assert [(await client.reply()).status for client in held] == [200] * 5
    assert engine.most_busy == 2
    served = [engine.body(n)["messages"][0]["content"] for n in range(5)]
    assert served == [f"number {n}" for n in range(5)]


async def test_o1_who_waited_to_the_limit_is_told_so(start: Start) -> None:
    free = asyncio.Event()
    engine = vllm(says("a", "b", until=free))
    rest = "queue: {wait: 300ms}\nclasses: {default: {sheddable: false}}"
    gateway = await start({"b1": engine}, b1={"running": "1"}, rest=rest)
    runs = await gateway.begin_chat(stream=True)
    await engine.asked_for(1)
    reply = await gateway.chat()
    assert (reply.status, reply.error["code"]) == (429, "queue_timeout")
    assert "retry-after" in reply.headers
    free.set()
    assert (await runs.reply()).complete


async def test_who_would_wait_to_the_limit_for_nothing_is_told_at_once(start: Start) -> None:
    free = asyncio.Event()
    engine = vllm(says("a", "b", until=free))
    gateway = await start({"b1": engine}, b1={"running": "1"}, rest="queue: {wait: 10ms}")
    runs = await gateway.begin_chat(stream=True)
    await engine.asked_for(1)
    reply = await gateway.chat()
    assert (reply.status, reply.error["code"]) == (429, "deadline")
    free.set()
    assert (await runs.reply()).complete


async def test_o2_tokens_count_though_slots_are_free(start: Start) -> None:
    free = asyncio.Event()
    engine = vllm(says("a", "b", until=free, prompt=32_000), window=65_536, pool=100_000)
    gateway = await start({"b1": engine}, b1={"running": "64", "queued_prefill": "60s"})
    held = [await gateway.begin_chat(f"{n} {prose(32_000)}", stream=True, max_tokens=100) for n in range(3)]
    await gateway.until(lambda: gateway.queued == 1)
    await engine.asked_for(2)
    assert engine.busy == 2
    free.set()
    for client in held:
        assert (await client.reply()).complete


async def test_traffic_that_is_not_ours_takes_room_too(start: Start) -> None:
    engine = vllm(says("a"), window=65_536, pool=50_000)
    gateway = await start({"b1": engine}, rest="health: {probe: 500ms}\nqueue: {wait: 400ms}")
    engine.pages["/metrics"] = vllm_metrics(pool=50_000, running=3, usage=0.95)
    await gateway.until(lambda: gateway.app.roster["b1"].foreign_tokens > 30_000, 6)
    reply = await gateway.chat(prose(20_000), max_tokens=10)
    assert reply.status == 429
    assert engine.asked == []


async def test_o3_what_no_pool_could_ever_hold_is_refused_at_once(start: Start) -> None:
    engines = {"b1": vllm(window=131_072, pool=50_000), "b2": llama_cpp(model="tiny", slots=1, window=50_000)}
    gateway = await start(engines)
    began = clock.monotonic()
    reply = await gateway.chat(prose(90_000))
    assert clock.monotonic() - began < 1
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert "50000" in reply.error["message"]
    assert gateway.queued == 0
    assert not any(engine.asked for engine in engines.values())


async def test_the_queue_is_by_model(start: Start) -> None:
    free = asyncio.Event()
    engines = {"b1": vllm(says("a", "b", until=free), model="one"), "b2": vllm(says("ok"), model="two")}
    gateway = await start(engines, b1={"running": "1"}, rest="queue: {length: 1}")
    held = [await gateway.begin_chat(model="one", stream=True)]
    await engines["b1"].asked_for(1)
    held.append(await gateway.begin_chat(model="one", stream=True))
    await gateway.until(lambda: gateway.queued == 1)
    assert (await gateway.chat(model="one")).status == 429
    assert (await gateway.chat(model="two")).status == 200
    queue = await gateway.admin("/admin/queue")
    assert (queue["waiting"], {name: line["requests"] for name, line in queue["models"].items()}) == (1, {"one": 1})
    free.set()
    for client in held:
        assert (await client.reply()).complete


async def test_of_one_key_s_requests_the_one_that_is_due_first_goes_first(start: Start) -> None:
    free = asyncio.Event()
    engine = vllm(says("a", "b", until=free))
    rest = "models: [{name: patient, serves: tiny, slo: {ttft: 60s}}, {name: quick, serves: tiny, slo: {ttft: 2s}}]"
    gateway = await start({"b1": engine}, b1={"running": "1"}, rest=rest)
    held = [await gateway.begin_chat("runs", model="patient", stream=True)]
    await engine.asked_for(1)
    for number, (text, model) in enumerate((("later", "patient"), ("sooner", "quick")), start=1):
        held.append(await gateway.begin_chat(text, model=model, stream=True))
        await gateway.until(lambda n=number: gateway.queued == n)
    free.set()
    assert [(await client.reply()).status for client in held] == [200] * 3
    assert [engine.body(n)["messages"][0]["content"] for n in range(3)] == ["runs", "sooner", "later"]


async def test_what_can_not_keep_its_goal_is_turned_away_with_the_goal_named(start: Start) -> None:
    free = asyncio.Event()
    engine = vllm(says("a", until=free), window=32_768)
    slo = "{ttft: 1s, ttft_per_1k: 10ms, shed: true}"
    rest = f"models: [{{name: quick, serves: tiny, slo: {slo}}}, {{name: patient, serves: tiny}}]"
    gateway = await start({"b1": engine}, b1={"running": "1"}, rest=rest)
    held = [await gateway.begin_chat("runs", model="quick", max_tokens=3000, stream=True)]
    await engine.asked_for(1)
    reply = await gateway.chat(prose(2000), model="quick")
    assert (reply.status, reply.error["code"]) == (429, "deadline")
    assert re.search(r"within 1\.0 s, the goal of 'quick' for a prompt of about \d+ tokens", reply.error["message"])
    assert int(reply.headers["retry-after"]) >= 1
    held.append(await gateway.begin_chat(prose(2000), model="patient", stream=True))
    await gateway.until(lambda: gateway.queued == 1)
    free.set()
    assert [(await client.reply()).status for client in held] == [200, 200]


async def test_o4_an_idle_key_is_among_the_next_two_whatever_another_has_queued(start: Start) -> None:
    free = asyncio.Event()
    engine = vllm(says("a", "b", until=free), window=32_768)
    keys = "auth: {keys: [{name: a, key: key-of-a-00001}, {name: b, key: key-of-b-00001}]}"
    rest = f"{keys}\nqueue: {{length: 100, wait: 60s}}"
    gateway = await start({"b1": engine}, b1={"running": "1", "queued_prefill": "60s"}, rest=rest)

    async def begin(key: str, text: str) -> WireClient:
        body = {"model": "tiny", "stream": True, "messages": [{"role": "user", "content": text}]}
        return await gateway.send(body, authorization=f"Bearer key-of-{key}-00001")

    held = [await begin("a", f"number {n} {prose(4000)}") for n in range(20)]
    await gateway.until(lambda: len(engine.asked) + gateway.queued == 20)
    held.append(await begin("b", "a short one"))
    await gateway.until(lambda: len(engine.asked) + gateway.queued == 21)
    before = len(engine.asked)
    free.set()
    for client in held:
        assert (await client.reply()).complete
    texts = [engine.body(n)["messages"][0]["content"] for n in range(len(engine.asked))]
    assert "a short one" in texts[before : before + 2]


async def test_o5_an_engine_of_one_model_is_not_asked_for_another_while_one_runs(start: Start) -> None:
    free = asyncio.Event()
    engine = vllm(says("a", "b", until=free), model="one")
    engine.pages["/v1/models"] = page(
        {"object": "list", "data": [{"id": name, "object": "model", "max_model_len": 8192} for name in ("one", "two")]}
    )
    gateway = await start({"b1": engine}, b1={"one_model": "true", "running": "8"})
    first = await gateway.begin_chat(model="one", stream=True)
    await engine.asked_for(1)
    other = await gateway.begin_chat(model="two", stream=True)
    same = await gateway.begin_chat("too", model="one", stream=True)
    await engine.asked_for(2)
    await gateway.until(lambda: gateway.queued == 1)
    assert [engine.body(n)["model"] for n in range(2)] == ["one", "one"]
    free.set()
    assert (await first.reply()).complete
    assert (await same.reply()).complete
    assert (await other.reply()).complete
    assert engine.body(2)["model"] == "two"
