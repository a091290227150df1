"""Pictures and sounds count by their size, on every surface that may bring them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.edge.wire_client import Reply
from tests.shell.engine_double import openai_compatible, page, says
from tests.shell.fixtures import Start
from tests.shell.running import Running
from tests.wire.test_image_size import jpeg, png, url, wav

MODEL = "qwen3-vl-8b"
TOKENS = 60 * 34 + 2
"""Of 1,920 x 1,080 pixels."""
DATA = base64.b64encode(png(1920, 1080)).decode()
SOURCE = {"type": "base64", "media_type": "image/png", "data": DATA}
TURNS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url(png(1920, 1080))}}]}
            ]
        },
    ),
    "messages": (
        "/v1/messages",
        {"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "image", "source": SOURCE}]}]},
    ),
    "responses": (
        "/v1/responses",
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url(png(1920, 1080))}]}]},
    ),
    "ollama": ("/api/chat", {"stream": False, "messages": [{"role": "user", "content": "x", "images": [DATA]}]}),
    "generate": ("/api/generate", {"stream": False, "prompt": "x", "images": [DATA]}),
}


async def estimated(gateway: Running, reply: Reply, model: str) -> int:
    """Tokens that the prompt was estimated at."""
    record = await gateway.admin(f"/admin/decisions/{reply.headers['x-kvgate-decision']}")
    return int(record["request"]["estimates"][model]["prompt"])


@pytest.mark.parametrize("surface", TURNS)
async def test_a_picture_counts_by_its_size(start: Start, surface: str) -> None:
    engine = openai_compatible(says("ok", prompt=2100), model=MODEL)
    engine.pages |= dict.fromkeys(("/v1/messages", "/v1/responses"), page({}, 404))
    gateway = await start({"b1": engine}, b1={"abilities": "{vision: true}"})
    path, body = TURNS[surface]
    reply = await gateway.ask({"model": MODEL, **body}, path)
    assert reply.status == 200
    assert TOKENS <= await estimated(gateway, reply, MODEL) <= TOKENS + 120


async def test_pictures_are_counted_as_tokens_for_anthropics_count(start: Start) -> None:
    gateway = await start({"b1": openai_compatible(model=MODEL)})
    content = [{"type": "image", "source": SOURCE}, {"type": "text", "text": "what is it?"}]
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}]}
    reply = await gateway.ask(body, "/v1/messages/count_tokens")
    assert (reply.status, reply.headers["x-kvgate-count"]) == (200, "estimated")
    assert TOKENS <= reply.json["input_tokens"] <= TOKENS + 120


async def test_what_an_engine_makes_of_pictures_is_learned(start: Start) -> None:
    engine = openai_compatible(says("ok", prompt=530), model="own")
    gateway = await start({"b1": engine}, b1={"abilities": "{vision: true}"})
    picture = {"type": "image_url", "image_url": {"url": url(jpeg(640, 480))}}
    seen = []
    for _ in range(8):
        reply = await gateway.ask({"model": "own", "messages": [{"role": "user", "content": [picture]}]})
        assert reply.status == 200
        seen.append(await estimated(gateway, reply, "own"))
        await gateway.idle()
    assert seen[0] > 1000
    assert seen[-1] == pytest.approx(530, rel=0.05)


async def test_a_sound_counts_by_its_seconds(start: Start) -> None:
    engine = openai_compatible(says("ok", prompt=700), model="voxtral-mini")
    gateway = await start({"b1": engine}, b1={"abilities": "{audio: true}"})
    sound = {"type": "input_audio", "input_audio": {"format": "wav", "data": base64.b64encode(wav(40)).decode()}}
    body = {"model": "voxtral-mini", "messages": [{"role": "user", "content": [sound]}]}
    reply = await gateway.ask(json.dumps(body).encode())
    assert reply.status == 200
    assert 500 <= await estimated(gateway, reply, "voxtral-mini") <= 620
