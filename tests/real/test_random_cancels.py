"""Five hundred clients leave at random moments; nothing of them stays."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import aiohttp
import pytest

from tests.real.conftest import Launch
from tests.real.gateway_process import backend, serving

CANCELS = 500
AT_ONCE = 25


@pytest.mark.timeout(300)
async def test_five_hundred_cancels(llama: Launch, tmp_path: Path) -> None:
    chance = random.Random(20)
    servers = [await llama("tiny", context=16384, slots=2), await llama("tiny", context=16384, slots=2)]
    lines = [backend(f"b{n}", server.url) for n, server in enumerate(servers)]
    async with serving(tmp_path, lines) as gateway:
        async with aiohttp.ClientSession() as http:
            assert await _ask(http, gateway.url, 0, stream=False, tokens=4) == 200
        await gateway.idle()
        files = gateway.open_files()

        left = 0
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(number: int, patience: float, stream: bool, tokens: int) -> None:
            nonlocal left
            async with turn, aiohttp.ClientSession() as http:
                try:
                    async with asyncio.timeout(patience):
                        await _ask(http, gateway.url, number, stream=stream, tokens=tokens)
                except TimeoutError:
                    left += 1

        await asyncio.gather(
            *(
                one(n, chance.choice((0.001, 0.01, 0.05, 0.2, 0.6)) * (0.5 + chance.random()), n % 3 != 0, 1500)
                for n in range(CANCELS)
            )
        )
        assert left >= CANCELS * 0.9, "nearly every client should have left before its answer was whole"
        gauges = await gateway.idle(within=30)
        assert gauges, "no gauges at all"
        assert not any(gauges.values()), gauges
        # Two pooled connections a backend may stay for some seconds; nothing else may.
        assert gateway.open_files() <= files + 4
        async with aiohttp.ClientSession() as http:
            assert await _ask(http, gateway.url, 0, stream=False, tokens=4) == 200
        log = gateway.log.read_text()
        assert "Traceback" not in log
        assert "never retrieved" not in log


async def _ask(http: aiohttp.ClientSession, url: str, number: int, *, stream: bool, tokens: int) -> int:
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": f"Question {number}: " + "and so on " * (number % 200)}],
        "max_tokens": tokens,
        "stream": stream,
        "ignore_eos": True,
    }
    async with http.post(f"{url}/v1/chat/completions", json=body) as reply:
        await reply.read()
        return reply.status
