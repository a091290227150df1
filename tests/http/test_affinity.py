"""Conversations keep their caches: small calls go elsewhere, and a full home is left."""

from __future__ import annotations

import asyncio

import pytest

from tests.http.test_context import prose
from tests.relay.fake_engine import silent
from tests.shell.engine_double import llama_cpp, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import chat

LONG, WINDOW = 30_000, 65_536


async def test_k4_a_title_leaves_the_only_slot_of_a_long_conversation_alone(start: Start) -> None:
    # Read once, for as long as such a prompt takes: an engine that read it in no time would lose nothing by another.
    turns = (says("so", prompt=LONG, first=0.6), says("so", prompt=LONG, cached=LONG - 20))
    engines = {name: llama_cpp(*turns, slots=1, window=WINDOW) for name in ("b1", "b2")}
    slow = {"device": "dgx-spark"}
    gateway = await start(engines, b1=slow, b2=slow)
    rules = prose(LONG)
    said = [{"role": "user", "content": rules}]
    homes = set()
    for turn in range(3):
        reply = await gateway.ask({"model": "smollm2", "messages": said}, **{"x-session-id": "agent"})
        homes.add(reply.headers["x-kvgate-backend"])
        said += [{"role": "assistant", "content": "so"}, {"role": "user", "content": f"and {turn}?"}]
    title = await gateway.ask(
        {"model": "smollm2", "messages": [{"role": "user", "content": "Name this chat. " * 50}], "max_tokens": 20}
    )
    assert len(homes) == 1
    assert title.headers["x-kvgate-backend"] not in homes
    last = await gateway.ask({"model": "smollm2", "messages": said}, **{"x-session-id": "agent"})
    assert {last.headers["x-kvgate-backend"]} == homes


@pytest.mark.parametrize(("running", "served"), [(2, "b1"), (8, "b2")])
async def test_k5_a_home_with_room_is_kept_and_a_full_one_is_left(start: Start, running: int, served: str) -> None:
    """Beside as slow an engine, where reading the prompt again takes less than the answers that run at home."""
    engines = {name: vllm(says("so", prompt=6000), window=WINDOW) for name in ("b1", "b2")}
    limit = {"running": "8", "queued_prefill": "60s", "timeouts": "{first_token: 60s}"}
    gateway = await start(engines, b1=limit, b2=limit, rest="routing: {harm: 0}")
    said = chat(prose(6000), max_tokens=2000)
    home = (await gateway.ask(said)).headers["x-kvgate-backend"]
    other = "b2" if home == "b1" else "b1"
    engines[home].now_plays(silent())
    blockers = []
    engines[other].now_plays(says("so", prompt=6000))
    # What runs at home goes on from the same prompt, so it goes there.
    for number in range(running):
        blockers.append(await gateway.send(chat(prose(6000) + f" {number}", max_tokens=2000, stream=True)))
        await gateway.until(lambda number=number: engines[home].busy > number)  # type: ignore[misc]
    engines[home].now_plays(says("so", prompt=6000))
    async with asyncio.timeout(5.0):
        reply = await gateway.ask(chat(prose(6000) + " last", max_tokens=2000))
    assert reply.headers["x-kvgate-backend"] == (home if served == "b1" else other)
    for client in blockers:
        client.close()
