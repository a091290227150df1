"""A growing conversation stays where its KV cache is, beside others, by the engine's own count."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest

from tests.real.conftest import Launch
from tests.real.gateway_process import backend, serving

SYSTEM = "You keep the log of a lighthouse. " * 12


async def _conversation(http: aiohttp.ClientSession, url: str, who: str, turns: int) -> list[tuple[str, int, int]]:
    """Play a conversation; returns (backend, prompt tokens, cached tokens) of each turn."""
    seen = []
    messages = [{"role": "system", "content": f"{who}. {SYSTEM}"}]
    for turn in range(turns):
        messages.append(
            {"role": "user", "content": f"{who} asks, turn {turn}: what did the night of day {turn} bring?"}
        )
        body = {"model": "tiny", "messages": messages, "max_tokens": 12, "temperature": 0, "ignore_eos": True}
        async with http.post(f"{url}/v1/chat/completions", json=body) as reply:
            assert reply.status == 200, await reply.text()
            answer = await reply.json()
            cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            seen.append((reply.headers["x-kvgate-backend"], answer["usage"]["prompt_tokens"], cached))
        messages.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})
        await asyncio.sleep(0.02)
    return seen


@pytest.mark.timeout(180)
async def test_later_turns_go_where_the_prefix_is(llama: Launch, tmp_path: Path) -> None:
    """Four slots over two backends, four conversations: each can keep a slot, if nobody moves."""
    east = await llama("tiny", context=8192, slots=2)
    west = await llama("tiny", context=16384, slots=2)
    async with (
        serving(tmp_path, [backend("east", east.url), backend("west", west.url)]) as gateway,
        aiohttp.ClientSession() as http,
    ):
        main, *_others = await asyncio.gather(
            _conversation(http, gateway.url, "Ada", 12),
            _conversation(http, gateway.url, "Grace", 12),
            _conversation(http, gateway.url, "Edsger", 12),
            _conversation(http, gateway.url, "Barbara", 12),
        )
        at_home = sum(later[0] == earlier[0] and later[2] >= 0.6 * earlier[1] for earlier, later in pairwise(main))
        assert at_home >= 10, main
        assert not any((await gateway.idle()).values())
