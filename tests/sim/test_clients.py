"""Clients of the served engine: hundreds of streams, the openai SDK, old ones, ones that leave."""

from __future__ import annotations

import asyncio
import signal
import sys

import aiohttp
import pytest
from openai import AsyncOpenAI

from gateway.sim.serve import EmulatedEngine, start_emulated
from tests.sim.recordings import events_of
from tests.sim.waiting import until
from tests.sim.workload import chat

CHAT = "/v1/chat/completions"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_is_aborted(stream: bool, client: aiohttp.ClientSession) -> None:
    async with start_emulated("rtx-pro-6000") as engine:
        body = chat("a long story", 5000, stream=stream) | {"model": None}
        request = asyncio.ensure_future(client.post(engine.url + CHAT, json=body))
        await until(lambda: engine.stats.running == 1, 5.0)
        if stream:
            (await request).close()
        else:
            request.cancel()
        # vLLM takes 40 ms; the bound leaves room for a busy machine.
        await until(lambda: engine.stats.running == 0, 0.5)
        assert engine.stats.counters.aborted == 1
        assert engine.stats.kv_usage == 0
        if not stream:
            with pytest.raises(asyncio.CancelledError):
                await request


async def test_300_streams_at_once(tiny: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    async def one(at: int) -> str:
        async with client.post(tiny.url + CHAT, json=chat(f"stream {at}", 16, stream=True)) as response:
            return await response.text()

    texts = await asyncio.gather(*map(one, range(300)))
    assert all(text.endswith("data: [DONE]\n\n") for text in texts)
    assert {text.count('"content":"') for text in texts} == {17}
    assert tiny.stats.counters.generated_tokens == 300 * 16
    assert tiny.stats.running == tiny.stats.waiting == 0


async def test_300_streams_through_the_openai_client(tiny: EmulatedEngine) -> None:
    async with AsyncOpenAI(base_url=tiny.url + "/v1", api_key="none", max_retries=0) as sdk:
        assert [model.id async for model in sdk.models.list()] == ["tiny"]

        async def one(at: int) -> tuple[int, int, str | None]:
            stream = await sdk.chat.completions.create(
                model="tiny",
                messages=[{"role": "user", "content": f"stream {at}"}],
                max_tokens=8,
                stream=True,
                stream_options={"include_usage": True},
            )
            pieces, used, reason = 0, 0, None
            async for chunk in stream:
                for choice in chunk.choices:
                    pieces += bool(choice.delta.content)
                    reason = choice.finish_reason or reason
                if chunk.usage is not None:
                    used = chunk.usage.completion_tokens
            return pieces, used, reason

        assert set(await asyncio.gather(*map(one, range(300)))) == {(8, 8, "length")}
        text = await sdk.completions.create(model="tiny", prompt="once", max_tokens=3)
        assert text.usage is not None
        assert text.usage.completion_tokens == 3


async def test_http_1_0_clients_get_a_plain_stream(tiny: EmulatedEngine) -> None:
    host, port = tiny.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = b'{"prompt":"x","max_tokens":2,"stream":true}'
    head = b"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    writer.write(head + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    headers, _, text = answer.partition(b"\r\n\r\n")
    assert b"chunked" not in headers
    assert len(events_of(text.decode())) == 3


async def test_the_command_serves_until_it_is_told_to_stop(client: aiohttp.ClientSession) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway.sim", "--profile", "rtx-3090", "--speed", "10", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await asyncio.wait_for(process.stdout.readline(), 30)).decode().strip()
    async with client.get(url + "/v1/models") as response:
        assert (await response.json())["data"][0]["id"] == "Qwen3-30B-A3B"
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 10) == 0
