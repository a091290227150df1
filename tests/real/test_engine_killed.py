"""kill -9 an engine with requests queued, in prefill and streaming."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway import clock
from tests.real.conftest import Launch
from tests.real.gateway_process import GatewayProcess, backend, serving


@dataclass
class Seen:
    """What one client saw."""

    status: int = 0
    backend: str = ""
    tokens: int = 0
    error: dict[str, Any] | None = None
    done: bool = False
    cut: bool = False
    began: asyncio.Event = field(default_factory=asyncio.Event)


async def _stream(http: aiohttp.ClientSession, url: str, prompt: str, max_tokens: int, seen: Seen) -> Seen:
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "stream": True,
        "ignore_eos": True,
    }
    try:
        async with http.post(f"{url}/v1/chat/completions", json=body) as reply:
            seen.status, seen.backend = reply.status, reply.headers.get("x-kvgate-backend", "")
            async for line in reply.content:
                if line.strip() == b"data: [DONE]":
                    seen.done = True
                elif line.startswith(b"data: "):
                    event = json.loads(line[6:])
                    if "error" in event:
                        seen.error = event["error"]
                    elif event["choices"] and event["choices"][0]["delta"].get("content"):
                        seen.tokens += 1
                        seen.began.set()
    except aiohttp.ClientPayloadError:
        seen.cut = True
    return seen


async def _back_in_use(gateway: GatewayProcess, name: str, within: float) -> float:
    started = clock.monotonic()
    while clock.monotonic() - started < within:
        views = {view["name"]: view["health"] for view in (await gateway.admin_json("/admin/backends"))["backends"]}
        if views[name] in ("up", "trial"):
            return clock.monotonic() - started
        await asyncio.sleep(0.1)
    raise AssertionError(f"{name} is not back after {within} s")


async def _someone_waits(gateway: GatewayProcess) -> dict[str, Any]:
    """The queue, once somebody stands in it."""
    deadline = clock.monotonic() + 5
    while True:
        queue: dict[str, Any] = await gateway.admin_json("/admin/queue")
        if queue["waiting"] or clock.monotonic() > deadline:
            return queue
        await asyncio.sleep(0.01)


@pytest.mark.timeout(180)
async def test_kill_minus_nine(llama: Launch, tmp_path: Path) -> None:
    east = await llama("tiny", context=49152, slots=3)
    west = await llama("tiny", context=49152, slots=3)
    async with (
        serving(tmp_path, [backend("east", east.url), backend("west", west.url)]) as gateway,
        aiohttp.ClientSession() as http,
    ):
        streaming = [Seen() for _ in range(4)]
        tasks = [
            asyncio.create_task(_stream(http, gateway.url, f"Story number {n}.", 2500, seen))
            for n, seen in enumerate(streaming)
        ]
        await asyncio.wait_for(asyncio.gather(*(seen.began.wait() for seen in streaming)), 30)
        # Two long prompts take the last slots and are in prefill; four more find no slot and wait.
        prefilling = [Seen() for _ in range(2)]
        waiting = [Seen() for _ in range(4)]
        for n, seen in enumerate(prefilling):
            prompt = f"Number {n}. " + " ".join(f"line {k} of {n}" for k in range(900))
            tasks.append(asyncio.create_task(_stream(http, gateway.url, prompt, 20, seen)))
        for n, seen in enumerate(waiting):
            tasks.append(asyncio.create_task(_stream(http, gateway.url, f"Wait {n}.", 20, seen)))
        queue = await _someone_waits(gateway)
        victim = streaming[0].backend
        server = {"east": east, "west": west}[victim]
        await server.kill()
        await asyncio.gather(*tasks)

        assert queue["waiting"] >= 1, queue
        on_victim = [seen for seen in streaming if seen.backend == victim]
        on_other = [seen for seen in streaming if seen.backend != victim]
        assert on_victim
        assert on_other
        for seen in on_victim:
            assert seen.error is not None, seen
            assert seen.error["code"].startswith("upstream"), seen
            assert not seen.done, "a broken stream must not look finished"
            assert seen.cut, "the connection must end without its last chunk"
        for seen in on_other:
            assert (seen.done, seen.error, seen.cut) == (True, None, False), seen
        for seen in prefilling + waiting:
            assert (seen.status, seen.done, seen.error) == (200, True, None), seen
            assert seen.tokens == 20, seen
        assert not any((await gateway.idle()).values())

        await server.start()
        await _back_in_use(gateway, victim, within=30)
        again = [await _stream(http, gateway.url, f"Fresh question {n}.", 5, Seen()) for n in range(2)]
        again += await asyncio.gather(
            *(_stream(http, gateway.url, f"Parallel question {n}.", 200, Seen()) for n in range(4))
        )
        assert all(seen.done for seen in again)
        assert victim in {seen.backend for seen in again}, again
        assert not any((await gateway.idle()).values())
