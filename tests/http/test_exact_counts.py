"""Prompts near a limit are counted by an engine; what it says decides, and what it does not say changes nothing."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.http.test_context import prose
from tests.relay.fake_engine import Request, Script, Wire
from tests.shell.engine_double import EngineDouble, llama_cpp, page, says, vllm
from tests.shell.fixtures import Start


def counting(count: int, max_model_len: int = 4096) -> Script:
    """vLLM's answer to /tokenize."""
    return page({"count": count, "max_model_len": max_model_len, "tokens": [1, 2, 3], "token_strs": None})


def near(count: int, **more: object) -> EngineDouble:
    """An engine of 4,096 tokens that counts so many in every prompt."""
    engine = vllm(says("ok"), window=4096, **more)  # type: ignore[arg-type]
    engine.pages["/tokenize"] = counting(count)
    return engine


async def test_a_prompt_that_looks_too_long_and_is_not_is_served(start: Start) -> None:
    engine = near(4000)
    gateway = await start({"b1": engine})
    for tokens in (4100, 6000, 12_000):
        assert (await gateway.chat(prose(tokens), max_tokens=50)).status == 200
    assert len(engine.counted) == 3
    assert engine.body()["max_tokens"] == 50


async def test_a_prompt_that_looks_short_enough_and_is_not_is_refused(start: Start) -> None:
    engine = near(4090)
    gateway = await start({"b1": engine})
    reply = await gateway.chat(prose(4000), max_tokens=50)
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert "4090" in reply.error["message"]
    assert engine.asked == []


async def test_what_is_far_from_every_limit_is_not_counted(start: Start) -> None:
    engine = near(4000)
    gateway = await start({"b1": engine})
    assert (await gateway.chat(prose(500), max_tokens=50)).status == 200
    assert engine.counted == []


async def test_the_output_limit_is_lowered_by_the_count(start: Start) -> None:
    engine = near(4000)
    gateway = await start({"b1": engine})
    assert (await gateway.chat(prose(3900), max_tokens=300)).status == 200
    assert engine.body()["max_tokens"] == 96


async def test_no_engine_sees_a_prompt_that_it_is_not_cleared_for(start: Start) -> None:
    """Whoever counts a prompt reads it."""
    near_one, far_one = near(5000), near(10)
    gateway = await start({"near": near_one, "far": far_one}, far={"clearance": "public"})
    body = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": prose(5000)}]}).encode()
    reply = await gateway.ask(body, x_data_label="confidential")
    assert reply.status == 400
    assert (len(near_one.counted), far_one.counted) == (1, [])


async def test_engines_in_the_house_are_asked_first(start: Start) -> None:
    house, hosted = near(4000), near(4000)
    where = {"location": "off-prem", "clearance": "internal"}
    gateway = await start({"a": hosted, "b": house}, a=where)
    assert (await gateway.chat(prose(4100), max_tokens=5)).status == 200
    assert (len(house.counted), hosted.counted) == (1, [])


async def test_the_next_engine_is_asked_where_one_cannot_count(start: Start) -> None:
    mute, able = vllm(says("ok"), window=5000), near(4000)
    gateway = await start({"mute": mute, "able": able})
    for words in (4900, 4950):
        assert (await gateway.chat(prose(words), max_tokens=5)).status == 200
    assert (len(mute.counted), len(able.counted)) == (1, 2)  # of an engine without the route that is remembered


async def test_equal_prompts_are_counted_once(start: Start) -> None:
    engine = near(4000)
    gateway = await start({"b1": engine})
    replies = await asyncio.gather(*(gateway.chat(prose(4100), max_tokens=9) for _ in range(4)))
    assert [reply.status for reply in replies] == [200] * 4
    assert (await gateway.chat(prose(4100), max_tokens=9)).status == 200
    assert len(engine.counted) == 1
    assert await gateway.value('kvgate_exact_counts_total{by="engine",outcome="kept"}') >= 1
    assert await gateway.value('kvgate_exact_counts_total{by="engine",outcome="counted"}') == 1


async def test_a_template_switch_makes_another_prompt(start: Start) -> None:
    engine = near(4000)
    gateway = await start({"b1": engine})
    for thinking in (True, False, True):
        await gateway.chat(prose(4100), max_tokens=9, chat_template_kwargs={"enable_thinking": thinking})
    assert len(engine.counted) == 2


async def test_where_counting_hangs_the_estimate_stands(start: Start) -> None:
    async def hangs(request: Request, wire: Wire) -> None:
        await asyncio.sleep(30)

    engine = near(4000)
    engine.pages["/tokenize"] = hangs
    gateway = await start({"b1": engine})
    assert (await gateway.chat(prose(60_000), max_tokens=5)).status == 400
    assert (await gateway.chat(prose(4000), max_tokens=5)).status == 200
    assert await gateway.value('kvgate_exact_counts_total{by="engine",outcome="late"}') == 2
    # A late count may still serve the client's next try.
    await gateway.until(lambda: gateway.app.pipeline.counts.under_way == 0)


async def test_a_client_that_leaves_while_its_prompt_is_counted_is_told_of(start: Start) -> None:
    asked = asyncio.Event()

    async def hangs(request: Request, wire: Wire) -> None:
        asked.set()
        await asyncio.sleep(30)

    engine = near(4000)
    engine.pages["/tokenize"] = hangs
    gateway = await start({"b1": engine})
    client = await gateway.begin_chat(prose(4000), max_tokens=5)
    await asyncio.wait_for(asked.wait(), 5)
    client.close()
    await gateway.until(lambda: gateway.app.pipeline.counts.under_way == 0)
    (line,) = await gateway.access()
    assert (line["status"], line["outcome"]) == (499, "client_closed")
    assert await gateway.value('kvgate_client_closed_total{model="tiny",stage="queued"}') == 1


@pytest.mark.parametrize("answer", [page({}, 500), page(b"<html>"), page({"count": -1}), page({"count": "many"})])
async def test_a_useless_answer_changes_nothing(start: Start, answer: Script) -> None:
    engine = near(4000)
    engine.pages["/tokenize"] = answer
    gateway = await start({"b1": engine})
    assert (await gateway.chat(prose(60_000), max_tokens=5)).status == 400
    assert (await gateway.chat(prose(500), max_tokens=5)).status == 200


async def test_the_engines_key_goes_with_the_question(start: Start) -> None:
    engine = near(4000)
    gateway = await start({"b1": engine}, b1={"key": "secret-of-b1"})
    assert (await gateway.chat(prose(4100), max_tokens=5)).status == 200
    assert ("authorization", "Bearer secret-of-b1") in engine.counted[0].headers


async def test_anthropics_count_of_tokens_is_exact_where_an_engine_counts(start: Start) -> None:
    engine = llama_cpp(says("ok"), model="m", window=4096)
    engine.pages["/v1/messages/count_tokens"] = page({"input_tokens": 321})
    gateway = await start({"b1": engine})
    body = {"model": "m", "messages": [{"role": "user", "content": "word " * 300}]}
    reply = await gateway.ask(body, "/v1/messages/count_tokens")
    assert (reply.headers["x-kvgate-count"], reply.json["input_tokens"]) == ("exact", 321)
    assert engine.asked == []


async def test_of_other_surfaces_what_an_engine_would_be_sent_is_counted(start: Start) -> None:
    engine = llama_cpp(says("ok"), model="m", window=4096)
    engine.pages["/v1/responses/input_tokens"] = page({"input_tokens": 9000})
    gateway = await start({"b1": engine})
    reply = await gateway.ask({"model": "m", "input": prose(4000)}, "/v1/responses")
    assert reply.status == 400
    assert json.loads(engine.counted[0].body)["input"] == prose(4000)
    ollama = {"model": "m", "messages": [{"role": "user", "content": prose(4000)}]}
    engine.pages["/v1/chat/completions/input_tokens"] = page({"input_tokens": 8000})
    reply = await gateway.ask(ollama, "/api/chat")
    assert reply.status == 400
    assert json.loads(engine.counted[-1].body)["messages"] == ollama["messages"]
