"""A burst of equals: agents that start on one new context at once."""

from __future__ import annotations

import asyncio

from tests.relay.fake_engine import Request, Wire, silent
from tests.shell.engine_double import EngineDouble, says, vllm
from tests.shell.fixtures import Start

CONTEXT = "A context that every agent of this burst starts with. " * 600
"""Some 6,000 tokens."""
PATIENT = {"queued_prefill": "100s"}
"""So many seconds of prefill may wait in an engine that nobody waits for that reason."""


def engine(*scripts: object) -> EngineDouble:
    return vllm(*scripts, window=32_768)  # type: ignore[arg-type]


def own(engine: EngineDouble) -> list[str]:
    """What each request said after the context, in the order in which the engine got them."""
    return [engine.body(n)["messages"][0]["content"].removeprefix(CONTEXT) for n in range(len(engine.asked))]


async def test_agents_on_one_new_context_wait_for_the_first_of_them(start: Start) -> None:
    free = asyncio.Event()
    b1 = engine(says("a", until=free), says("b"))
    gateway = await start({"b1": b1}, b1=PATIENT)
    agents = [await gateway.begin_chat(CONTEXT + "0", stream=True)]
    await b1.asked_for(1)
    agents += [await gateway.begin_chat(f"{CONTEXT}{n}", stream=True) for n in range(1, 4)]
    await gateway.until(lambda: gateway.queued == 3)
    assert (await gateway.chat("something else")).status == 200
    assert own(b1) == ["0", "something else"]
    free.set()
    assert all([(await agent.reply()).complete for agent in agents])
    assert sorted(own(b1)) == ["0", "1", "2", "3", "something else"]


async def test_when_the_first_of_them_leaves_one_of_the_others_reads_it(start: Start) -> None:
    free = asyncio.Event()
    b1 = engine(silent(), says("a", until=free), says("b"))
    gateway = await start({"b1": b1}, b1=PATIENT)
    leader = await gateway.begin_chat(CONTEXT + "leader", stream=True)
    await b1.asked_for(1)
    agents = [await gateway.begin_chat(f"{CONTEXT}{n}", stream=True) for n in range(3)]
    await gateway.until(lambda: gateway.queued == 3)
    leader.close()
    await b1.asked_for(2)
    await gateway.until(lambda: gateway.queued == 2)
    assert len(b1.asked) == 2
    free.set()
    assert all([(await agent.reply()).complete for agent in agents])
    assert sorted(own(b1)) == ["0", "1", "2", "leader"]


async def test_an_engine_that_breaks_off_while_it_reads_keeps_nobody_waiting(start: Start) -> None:
    breaks = asyncio.Event()

    async def breaks_off(_request: Request, wire: Wire) -> None:
        await breaks.wait()
        wire.reset()

    b1 = engine(breaks_off, says("a"))
    gateway = await start({"b1": b1}, b1=PATIENT, rest="retry: {attempts: 0}")
    leader = asyncio.create_task(gateway.chat(CONTEXT + "leader", stream=True))
    await b1.asked_for(1)
    followers = [asyncio.create_task(gateway.chat(f"{CONTEXT}{n}", stream=True)) for n in range(2)]
    await gateway.until(lambda: gateway.queued == 2)
    breaks.set()
    assert (await leader).status == 502
    assert [(await follower).status for follower in followers] == [200, 200]
