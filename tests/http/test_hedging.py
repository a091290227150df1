"""A second attempt beside one that is late: one answer, the other engine let go, and only where the file says so."""

from __future__ import annotations

import asyncio

import pytest

from gateway.core import hedging
from tests.relay.fake_engine import Request, Script, Wire, json_answer, silent
from tests.shell.engine_double import EngineDouble, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import Running, text_of

SECOND = {"device": "dgx-spark"}
"""Slower, so that the other one is asked first."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hedging, "LEAST", 0.15)


def rest(share: str = "100%", more: str = "") -> str:
    return f"""retry: {{hedge: {share}}}
classes: {{interactive: {{}}}}
models: [{{name: tiny, serves: tiny, class: interactive{more}}}]"""


async def between(
    start: Start, first: Script, second: Script, **more: str
) -> tuple[Running, EngineDouble, EngineDouble]:
    b1, b2 = vllm(first), vllm(second)
    return await start({"b1": b1, "b2": b2}, b2=SECOND, rest=rest(**more)), b1, b2


@pytest.mark.parametrize("continuation", ["", ", continuation: true"])
async def test_who_answers_first_is_shown_and_the_other_is_let_go(start: Start, continuation: str) -> None:
    gateway, b1, b2 = await between(start, silent(), says("from", " two"), more=continuation)
    async with asyncio.timeout(3.0):
        reply = await gateway.chat(stream=True)
    assert (reply.status, text_of(reply.body)) == (200, "from two")
    assert reply.headers["x-kvgate-backend"] == "b2"
    await b1.quiet()
    assert (len(b1.asked), len(b2.asked)) == (1, 1)
    assert b1.asked[0].values("x-request-id") != b2.asked[0].values("x-request-id")
    assert await gateway.value('kvgate_hedged_total{backend="b2"}') == 1
    record = await gateway.admin(f"/admin/decisions/{reply.headers['x-kvgate-decision']}")
    assert record["settled"]["outcome"] == "completed"
    assert record["settled"]["backend"] == "b2"
    assert await gateway.value('kvgate_client_closed_total{model="tiny",phase="prefill"}') == 0


async def test_the_first_may_still_win(start: Start) -> None:
    gateway, b1, b2 = await between(start, says("from", " one", first=0.4), silent())
    reply = await gateway.chat(stream=True)
    assert text_of(reply.body) == "from one"
    assert reply.headers["x-kvgate-backend"] == "b1"
    await b2.quiet()
    assert (len(b1.asked), len(b2.asked)) == (1, 1)


async def test_it_goes_on_with_one_where_the_other_fails_and_both_failures_are_one_error(start: Start) -> None:
    async def breaks(_request: Request, wire: Wire) -> None:
        await asyncio.sleep(0.4)
        wire.reset()

    gateway, b1, b2 = await between(start, breaks, says("from", " two", first=0.6))
    reply = await gateway.chat(stream=True)
    assert text_of(reply.body) == "from two"
    b1.now_plays(breaks)
    b2.now_plays(json_answer({"error": {"message": "boom"}}, 500))
    failed = await gateway.chat("other", stream=True)
    assert failed.status == 502
    assert len(b1.asked) + len(b2.asked) == 4


async def test_a_client_that_leaves_ends_both(start: Start) -> None:
    gateway, b1, b2 = await between(start, silent(), silent())
    client = await gateway.begin_chat(stream=True)
    await b2.asked_for(1)
    client.close()
    await b1.quiet()
    await b2.quiet()
    await gateway.idle()


@pytest.mark.parametrize("how", ["off", "label", "limits", "running", "whole"])
async def test_where_there_is_none(start: Start, how: str) -> None:
    text = rest("0%" if how == "off" else "100%")
    limits = {"limits": "{tokens: 1M/hour}", "running": "{running: 8}"}.get(how)
    keys = f"auth: {{keys: [{{name: k, key: sk-0123456789abcdef, limits: {limits}}}]}}\n" if limits else ""
    b1, b2 = vllm(says("late", first=0.5)), vllm(says("no"))
    second = SECOND | ({"clearance": "public"} if how == "label" else {})
    gateway = await start({"b1": b1, "b2": b2}, b2=second, rest=keys + text)
    headers = {"authorization": "Bearer sk-0123456789abcdef"} if keys else {}
    body = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "stream": how != "whole"}
    reply = await gateway.ask(body, **headers)
    assert reply.status == 200
    assert (len(b1.asked), len(b2.asked)) == (1, 0)


async def test_hedges_are_a_share_of_all_requests(start: Start) -> None:
    gateway, _, _ = await between(start, says("late", first=0.3), says("no"), share="20%")
    for number in range(2):
        await asyncio.gather(*(gateway.chat(f"{number}.{n}", stream=True) for n in range(8)))
    assert 1 <= await gateway.value('kvgate_hedged_total{backend="b2"}') <= 3
