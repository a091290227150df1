"""Engines killed in the middle of answers: with `continuation`, another goes on, and the text is what it would be."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.real.conftest import Launch
from tests.real.gateway_process import backend, serving

QUESTIONS = [
    "Write a short story about a {}.",
    "What is a {}? Explain it to a child.",
    "List five animals that are like a {}, and say a word about each.",
    "Why is a {} not blue?",
    "Describe a {} in the morning.",
]
THINGS = ["ship", "river", "market", "lamp", "garden", "train", "letter", "mountain", "violin", "cup", "road", "hat"]
ROUNDS = int(os.environ.get("KVGATE_KILLS", "4"))
"""Engines killed; with five streams each."""
TOKENS = 60


@dataclass
class Seen:
    """What one client saw of its stream."""

    text: str = ""
    ids: set[str] = field(default_factory=set)
    roles: int = 0
    finish: str | None = None
    usage: dict[str, Any] | None = None
    continued: int = 0
    error: dict[str, Any] | None = None
    done: bool = False
    pieces: int = 0
    came: asyncio.Event = field(default_factory=asyncio.Event)


async def _stream(http: aiohttp.ClientSession, url: str, question: str, seen: Seen, **more: object) -> Seen:
    body = {
        "model": "smol",
        "messages": [{"role": "user", "content": question}],
        "max_tokens": TOKENS,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        **more,
    }
    try:
        async with http.post(f"{url}/v1/chat/completions", json=body) as reply:
            assert reply.status == 200, await reply.text()
            async for line in reply.content:
                if line.strip() == b"data: [DONE]":
                    seen.done = True
                elif line.startswith(b"data: "):
                    _note(json.loads(line[6:]), seen)
    except aiohttp.ClientPayloadError:
        pass
    return seen


def _note(event: dict[str, Any], seen: Seen) -> None:
    if "error" in event:
        seen.error = event["error"]
        return
    seen.ids.add(event["id"])
    seen.usage = event.get("usage") or seen.usage
    seen.continued = max(seen.continued, event.get("kvgate", {}).get("continued", 0))
    for choice in event["choices"]:
        seen.roles += "role" in choice["delta"]
        seen.finish = choice["finish_reason"] or seen.finish
        if choice["delta"].get("content"):
            seen.text += choice["delta"]["content"]
            seen.pieces += 1
            if seen.pieces >= 3:
                seen.came.set()


@pytest.mark.timeout(280)
async def test_answers_go_on_as_they_would_have(llama: Launch, smollm2: Path, tmp_path: Path) -> None:
    east = await llama("smol", model=smollm2, context=8192, slots=5)
    west = await llama("smol", model=smollm2, context=8192, slots=5)
    servers = {"east": east, "west": west}
    lines = [backend(name, server.url) for name, server in servers.items()]
    rest = "models:\n  - {name: smol, serves: smol, continuation: true}\nretry: {budget: 1.0}"
    async with serving(tmp_path, lines, rest=rest) as gateway, aiohttp.ClientSession() as http:
        went_on = 0
        for thing in THINGS[:ROUNDS]:
            questions = [question.format(thing) for question in QUESTIONS]
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as direct:
                whole = [await _stream(direct, west.url, question, Seen()) for question in questions]
            seen = [Seen() for _ in questions]
            tasks = [
                asyncio.create_task(_stream(http, gateway.url, *each)) for each in zip(questions, seen, strict=True)
            ]
            await asyncio.wait_for(asyncio.gather(*(each.came.wait() for each in seen)), 60)
            victim = max((await gateway.admin_json("/admin/backends"))["backends"], key=lambda view: view["running"])[
                "name"
            ]
            await servers[victim].kill()
            await asyncio.gather(*tasks)
            await servers[victim].start()
            await gateway.until_up(2, within=30)
            for one, due in zip(seen, whole, strict=True):
                assert (one.error, one.done, one.finish) == (None, True, due.finish), one
                assert one.text == due.text, (one.text, due.text)
                assert (len(one.ids), one.roles) == (1, 1), one
                assert one.usage is not None
                assert due.usage is not None
                assert one.usage["prompt_tokens"] == due.usage["prompt_tokens"]
                assert abs(one.usage["completion_tokens"] - due.usage["completion_tokens"]) <= 1
                went_on += one.continued
        assert went_on >= 2 * ROUNDS
        print(f"\n{went_on} answers went on elsewhere")
        assert not any((await gateway.idle()).values())
