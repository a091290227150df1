"""Minutes of silence before the first token (known failure S8): in the queue, and while the engine is in prefill."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from tests.edge.wire_client import Reply
from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import events, text_of

KEEPALIVE = b": keepalive\n\n"
QUICK = "keepalive: 100ms"


def _only_comments_before_events(body: bytes) -> int:
    """The number of keepalives at the head; no `data:` line may be empty (SDKs stumble over it)."""
    assert re.search(rb"^data:\s*$", body, re.MULTILINE) is None
    count = 0
    while body.startswith(KEEPALIVE):
        body, count = body[len(KEEPALIVE) :], count + 1
    return count


async def test_s8_a_silent_prefill_draws_comments(start: Start) -> None:
    gateway = await start({"b1": vllm(says("Hel", "lo", first=0.75))}, server=QUICK)
    reply = await gateway.chat(stream=True)
    assert reply.status == 200
    assert 4 <= _only_comments_before_events(reply.body) <= 8
    assert text_of(reply.body) == "Hello"
    assert events(reply.body)[-1] == "[DONE]"


async def test_s8_a_queued_stream_draws_comments_after_twice_as_long(start: Start) -> None:
    go = asyncio.Event()
    engine = vllm(says("a", "b", until=go))
    gateway = await start({"b1": engine}, server=QUICK, b1={"running": "1"})
    first = await gateway.begin_chat(stream=True)
    await engine.asked_for(1)
    waiting = asyncio.create_task(gateway.chat("second", stream=True))
    await gateway.until(lambda: gateway.queued == 1)
    await asyncio.sleep(0.6)
    assert engine.most_busy == 1
    go.set()
    reply = await waiting
    assert 3 <= _only_comments_before_events(reply.body) <= 7
    assert text_of(reply.body) == "ab"
    assert events(reply.body)[-1] == "[DONE]"
    assert (await first.reply()).complete


async def test_s8_a_queued_whole_answer_gets_nothing_before_it(start: Start) -> None:
    go = asyncio.Event()
    engine = vllm(says("a", "b", until=go))
    gateway = await start({"b1": engine}, server=QUICK, b1={"running": "1"})
    first = await gateway.begin_chat(stream=True)
    await engine.asked_for(1)
    waiting = asyncio.create_task(gateway.chat("second"))
    await asyncio.sleep(0.5)
    go.set()
    assert (await waiting).json["choices"][0]["message"]["content"] == "ab"
    assert (await first.reply()).complete


@pytest.mark.parametrize(
    ("path", "body", "event"),
    [
        ("/v1/chat/completions", {}, b'data: {"error":'),
        ("/v1/messages", {"max_tokens": 9}, b"event: error\ndata: "),
    ],
)
async def test_s8_a_refusal_after_comments_is_an_event_and_a_cut(
    start: Start, path: str, body: dict[str, Any], event: bytes
) -> None:
    go = asyncio.Event()
    engine = vllm(says("a", "b", until=go))
    gateway = await start({"b1": engine}, server=QUICK, rest="queue: {wait: 600ms}", b1={"running": "1"})
    first = await gateway.begin_chat(stream=True)
    await engine.asked_for(1)
    asked = {"model": "tiny", "messages": [{"role": "user", "content": "x"}], "stream": True, **body}
    reply: Reply = await gateway.ask(asked, path)
    assert reply.status == 200
    assert not reply.complete
    assert _only_comments_before_events(reply.body) >= 2
    last = reply.body.rstrip(b"\n").split(b"\n\n")[-1]
    assert last.startswith(event)
    assert b"queue_timeout" in last or b'"deadline"' in last
    go.set()
    assert (await first.reply()).complete


async def test_s8_after_comments_alone_another_backend_may_still_answer(start: Start) -> None:
    async def dies(_request: object, wire: Any) -> None:
        await asyncio.sleep(0.4)
        wire.reset()

    engines = {"b1": vllm(dies), "b2": vllm(says("Hel", "lo", gap=0.01))}
    gateway = await start(engines, server=QUICK)
    replies = [await gateway.chat(f"{n}", stream=True) for n in range(4)]
    assert [text_of(reply.body) for reply in replies] == ["Hello"] * 4
    assert engines["b1"].most_busy
    assert any(_only_comments_before_events(reply.body) for reply in replies)
