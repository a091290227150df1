"""Two hundred clients, four slots.

The engines never see more than they have, everybody gets an answer or an honest no.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from gateway.local.launch import LlamaServer
from tests.real.conftest import Launch
from tests.real.gateway_process import backend, serving


async def _watch(http: aiohttp.ClientSession, server: LlamaServer, seen: list[tuple[int, int]]) -> None:
    """Note (processing, deferred) of the engine's own metrics until cancelled."""
    while True:
        async with http.get(f"{server.url}/metrics") as reply:
            text = await reply.text()
        numbers = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line[:1] not in ("#", "")}
        seen.append((int(numbers["llamacpp:requests_processing"]), int(numbers["llamacpp:requests_deferred"])))
        await asyncio.sleep(0.02)


@pytest.mark.timeout(240)
async def test_two_hundred_clients(llama: Launch, tmp_path: Path) -> None:
    servers = [await llama("tiny", context=8192, slots=2), await llama("tiny", context=4096, slots=2)]
    lines = [backend(f"b{n}", server.url) for n, server in enumerate(servers)]
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        serving(tmp_path, lines, rest="queue: {length: 120, wait: 60s}") as gateway,
        aiohttp.ClientSession(connector=connector) as http,
    ):

        async def ask(number: int) -> tuple[int, str | None]:
            body = {
                "model": "tiny",
                "messages": [{"role": "user", "content": f"Client {number} says hello."}],
                "max_tokens": 24,
                "stream": number % 2 == 0,
                "ignore_eos": True,
            }
            async with http.post(f"{gateway.url}/v1/chat/completions", json=body) as reply:
                data = await reply.read()
                if reply.status == 200 and body["stream"]:
                    assert data.rstrip().endswith(b"data: [DONE]")
                return reply.status, reply.headers.get("Retry-After")

        await asyncio.gather(*(ask(number) for number in range(8)))  # warm
        before = gateway.memory()
        seen: list[list[tuple[int, int]]] = [[], []]
        watchers = [asyncio.create_task(_watch(http, server, s)) for server, s in zip(servers, seen, strict=True)]
        answers = await asyncio.gather(*(ask(number) for number in range(200)))
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)

        statuses = Counter(status for status, _ in answers)
        assert set(statuses) <= {200, 429, 503}, statuses
        assert statuses[200] >= 100, statuses
        assert statuses[429] >= 1, f"a queue of 120 can't hold the rest of 200: {statuses}"
        for status, retry_after in answers:
            if status != 200:
                assert retry_after is not None
                assert 1 <= int(retry_after) <= 59
        for samples in seen:
            assert samples
            assert max(processing for processing, _ in samples) <= 2
            assert max(deferred for _, deferred in samples) == 0, "a request waited inside an engine"
        assert not any((await gateway.idle()).values())
        assert gateway.memory() - before < 24 << 20
