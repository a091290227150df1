from __future__ import annotations

import asyncio
import json

import pytest

from gateway import clock
from tests.http.test_context import prose
from tests.shell.engine_double import llama_cpp, page, says, vllm
from tests.shell.fixtures import Start


async def test_t1_characters_of_three_bytes_are_no_quarter_of_a_token(start: Start) -> None:
    """Recent vocabularies have at least half a token for each: what is over the window even so needs no count."""
    engine = vllm(says("ok", prompt=1500), window=4096)
    gateway = await start({"b1": engine})
    assert (await gateway.chat("汉字" * 6000)).status == 400
    assert engine.asked == []
    assert (await gateway.chat("words " * 1000)).status == 200


async def test_t1_what_depends_on_the_vocabulary_is_counted_before_it_is_refused(start: Start) -> None:
    engine = vllm(says("ok", prompt=1500), window=4096)
    engine.pages["/tokenize"] = page({"count": 6006, "max_model_len": 4096, "tokens": [1]})
    gateway = await start({"b1": engine})
    reply = await gateway.chat("汉字" * 3000)
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert "6006" in reply.error["message"]
    assert (engine.asked, len(engine.counted)) == ([], 1)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
async def test_t3_a_prompt_of_megabytes_stalls_nothing(start: Start, path: str) -> None:
    """Passed through on chat, translated to it on the others."""
    engine = vllm(says(*["t"] * 1000, gap=0.02), window=4_000_000, pool=8_000_000)
    engine.pages["/openapi.json"] = page({"paths": {"/v1/chat/completions": {"post": {}}}})
    gateway = await start({"b1": engine}, b1={"queued_prefill": "60s"})
    prompt = "lorem ipsum " * 420_000
    asked = {"input": prompt} if path == "/v1/responses" else {"messages": [{"role": "user", "content": prompt}]}
    big = json.dumps({"model": "tiny", "max_tokens": 9, **asked}).encode()
    assert len(big) > 5_000_000
    streaming = await gateway.begin_chat(stream=True)
    await engine.asked_for(1)
    probe = await gateway.connect()
    await streaming.head()
    stalls: list[float] = []
    gaps: list[float] = []

    async def probes() -> None:
        while True:
            began = clock.monotonic()
            assert (await probe.request("GET", "/health/live")).status == 200
            stalls.append(clock.monotonic() - began)
            await asyncio.sleep(0.02)

    async def tokens() -> None:
        last = clock.monotonic()
        while await streaming.chunk():
            gaps.append(clock.monotonic() - last)
            last += gaps[-1]

    watching = [asyncio.create_task(probes()), asyncio.create_task(tokens())]
    engine.now_plays(says("ok"))
    worst: list[tuple[float, float]] = []
    for number in range(3):  # what is proportional to the prompt shows each time, what other processes do does not
        await asyncio.sleep(0.05)
        stalls.clear()
        gaps.clear()
        assert (await gateway.ask(big.replace(b"lorem", b"lor%02d" % number, 1), path)).status == 200
        await asyncio.sleep(0.05)
        worst.append((max(stalls), max(gaps)))
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    streaming.close()
    assert min(stall for stall, _ in worst) < 0.05
    assert min(gap for _, gap in worst) < 0.02 + 0.05


async def test_t4_a_stated_output_limit_is_not_reserved_whole(start: Start) -> None:
    free = asyncio.Event()
    engine = llama_cpp(says("a", "b", until=free, prompt=1000), slots=4, window=32_768)
    gateway = await start({"b1": engine}, b1={"kv_pool": "32768 tokens"})
    clients = [await gateway.begin_chat(prose(1000), model="smollm2", max_tokens=32_000, stream=True) for _ in range(4)]
    await engine.asked_for(4)
    assert engine.busy == 4
    free.set()
    for client in clients:
        assert (await client.reply()).complete


async def test_t4_the_worst_case_can_be_reserved_instead(start: Start) -> None:
    free = asyncio.Event()
    engine = llama_cpp(says("a", "b", until=free, prompt=1000), slots=4, window=32_768)
    gateway = await start({"b1": engine}, b1={"kv_pool": "32768 tokens"}, rest="admission: {reserve: worst_case}")
    clients = [await gateway.begin_chat(prose(1000), model="smollm2", max_tokens=30_000, stream=True) for _ in range(2)]
    await gateway.until(lambda: gateway.queued == 1)
    await engine.asked_for(1)
    assert engine.busy == 1
    free.set()
    for client in clients:
        assert (await client.reply()).complete


@pytest.mark.parametrize(
    ("asked", "sent"), [({}, 2048), ({"max_tokens": 99_999}, 3000), ({"max_completion_tokens": 10}, 10)]
)
async def test_t5_default_and_ceiling_of_the_output_reach_the_engine(
    start: Start, asked: dict[str, int], sent: int
) -> None:
    engine = vllm(says("ok"), window=32_768)
    route = "models: [{name: m, serves: tiny, output: {default: 2048, ceiling: 3000}}]"
    gateway = await start({"b1": engine}, rest=route)
    assert (await gateway.chat(model="m", **asked)).status == 200
    body = engine.body()
    assert {body.get("max_tokens"), body.get("max_completion_tokens")} - {None} == {sent}
