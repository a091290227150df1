"""The emulated engine under real clients: timing, disconnects, overload, conversations, many streams."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import aiohttp
import pytest

from gateway import clock
from gateway.sim.baselines import RoundRobin
from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Arrival
from gateway.sim.profile import engine_profile
from gateway.sim.sequence import SimRequest
from gateway.sim.serve import EmulatedEngine, start_emulated
from gateway.sim.text import SegmentText
from gateway.sim.virtual import simulate
from tests.sim.recordings import events_of
from tests.sim.workload import chat

CHAT = "/v1/chat/completions"


async def test_a_lone_stream_keeps_the_time_of_the_formulas(client: aiohttp.ClientSession) -> None:
    async with start_emulated("rtx-pro-6000") as engine:
        times = engine.service.profile.step_time
        async with client.post(engine.url + CHAT, json=chat("word " * 4000, 40, stream=True) | {"model": None}) as got:
            start = clock.monotonic()
            moments = [clock.monotonic() - start async for line in got.content if b'"content":"' in line]
    prompt = 4 + 5000 + 4
    first = times.overhead_s + times.prefill_s(prompt)
    rest = sum(times.decode_s(1, prompt + made) for made in range(1, 40))
    assert len(moments) == 41  # the role chunk and 40 tokens
    assert moments[1] == pytest.approx(first, abs=0.1)
    assert moments[-1] - moments[1] == pytest.approx(rest, abs=0.1)


async def test_equal_prompts_have_equal_answers_on_any_engine(client: aiohttp.ClientSession) -> None:
    texts = []
    for device in ("rtx-3090", "dgx-spark"):
        async with start_emulated(device, speed=50) as engine:
            body = {"prompt": "tell me", "max_tokens": 12}
            async with client.post(engine.url + "/v1/completions", json=body) as response:
                texts.append((await response.json())["choices"][0]["text"])
    assert texts[0] == texts[1]
    assert len(texts[0]) == 48


async def test_streamed_and_whole_answers_are_the_same_text(
    tiny: EmulatedEngine, client: aiohttp.ClientSession
) -> None:
    async with client.post(tiny.url + CHAT, json=chat("hello", 30)) as response:
        whole = (await response.json())["choices"][0]["message"]["content"]
    async with client.post(tiny.url + CHAT, json=chat("hello", 30, stream=True)) as response:
        events = events_of(await response.text())
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-1]) == whole


async def test_a_stop_string_ends_the_answer_before_itself(tiny: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    async with client.post(tiny.url + CHAT, json=chat("hello", 30)) as response:
        words = (await response.json())["choices"][0]["message"]["content"].split()
    for stream in (False, True):
        body = chat("hello", 30, stream=stream) | {"stop": [words[5] + " " + words[6]]}
        async with client.post(tiny.url + CHAT, json=body) as response:
            if stream:
                parts = [event["choices"][0] for event in events_of(await response.text())[:-1]]
                text = "".join(part["delta"].get("content", "") for part in parts)
                last = parts[-1]
            else:
                last = (await response.json())["choices"][0]
                text = last["message"]["content"]
        assert text.split() == words[:5]
        assert (last["finish_reason"], last["stop_reason"]) == ("stop", f"{words[5]} {words[6]}")


async def test_the_next_turn_of_a_conversation_hits_the_answer_too(
    tiny: EmulatedEngine, client: aiohttp.ClientSession
) -> None:
    body = chat("tell me something long " * 10, 60)
    async with client.post(tiny.url + CHAT, json=body) as response:
        first = await response.json()
    messages = [
        {"role": "user", "content": "tell me something long " * 10},
        first["choices"][0]["message"],
        {"role": "user", "content": "and then?"},
    ]
    async with client.post(tiny.url + CHAT, json=body | {"messages": messages}) as response:
        usage = (await response.json())["usage"]
    seen = first["usage"]["prompt_tokens"] + 59  # the last token of an answer is never computed on
    assert usage["prompt_tokens_details"]["cached_tokens"] == seen // 16 * 16


async def test_headers_come_at_once_while_the_request_waits(client: aiohttp.ClientSession) -> None:
    profile = replace(engine_profile("rtx-pro-6000"), max_num_seqs=4)
    async with start_emulated(profile, model="tiny") as engine:
        started = clock.monotonic()
        streams = [
            await client.post(engine.url + CHAT, json=chat(f"number {at}", 2000, stream=True)) for at in range(10)
        ]
        assert clock.monotonic() - started < 2.0
        assert all(stream.status == 200 for stream in streams)
        assert (engine.stats.running, engine.stats.waiting) == (4, 6)
        async with client.get(engine.url + "/load") as response:
            assert await response.json() == {"server_load": 10}
        for stream in streams:
            stream.close()


async def test_memory_pressure_preempts_once_as_the_real_engine_did(client: aiohttp.ClientSession) -> None:
    # Recorded: 100 blocks of 32 tokens, four requests of about 700 + 300 tokens, one preemption, all answered.
    profile = replace(engine_profile("rtx-pro-6000"), block_size=32, num_blocks=100, max_model_len=2048)
    async with start_emulated(profile, model="tiny", speed=20) as engine:

        async def one(at: int) -> int:
            async with client.post(engine.url + CHAT, json=chat(f"{at:03} " * 692, 300)) as response:
                return (await response.json())["usage"]["completion_tokens"]

        assert await asyncio.gather(*map(one, range(4))) == [300] * 4
        assert engine.stats.counters.preemptions == 1
        assert engine.stats.kv_usage == 0


async def test_the_natural_end_of_an_answer_is_a_stop(client: aiohttp.ClientSession) -> None:
    async with start_emulated("rtx-3090", speed=50, answer_tokens=7) as engine:
        body = {"messages": [{"role": "user", "content": "x"}]}
        async with client.post(engine.url + CHAT, json=body) as response:
            answer = await response.json()
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == 7


def test_a_speed_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="speed"):
        start_emulated("rtx-3090", speed=0)


async def test_both_clocks_tell_the_same_time(client: aiohttp.ClientSession) -> None:
    profile = replace(engine_profile("dgx-spark"), max_num_seqs=4)
    prompts = [f"{at:03} " * 300 for at in range(10)]
    work = [
        SimRequest(str(at), SegmentText([(at, 308), (99 + at, 20)]), 308, 20, "length") for at in range(len(prompts))
    ]
    virtual = simulate([Arrival(0.0, each) for each in work], {"e": EngineModel(profile)}, RoundRobin())
    async with start_emulated(profile, model="tiny", speed=4) as engine:

        async def one(prompt: str) -> None:
            async with client.post(engine.url + CHAT, json=chat(prompt, 20)) as response:
                await response.read()

        start = clock.monotonic()
        await asyncio.gather(*map(one, prompts))
        real = (clock.monotonic() - start) * 4
        assert engine.stats.counters.generated_tokens == 200
    assert real == pytest.approx(virtual.makespan_s, rel=0.2)
