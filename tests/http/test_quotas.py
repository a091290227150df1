"""Limits of keys over the whole application: what counts, what clients are told, and that nothing counts twice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.core.quota import Quota
from tests.edge.wire_client import WireClient
from tests.relay.fake_engine import json_answer, silent
from tests.shell.engine_double import EngineDouble, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import Running, backend, chat, config

KEY = {"authorization": "Bearer secret-key-1"}
OTHER = {"authorization": "Bearer secret-key-2"}
FULL = 100_000
SLACK = 60
"""Tokens that may come back while a test runs: FULL a day is little more than one a second."""
COSTLESS = ("bad JSON", "unknown model", "server error", "time-out", "cancel in queue")
COSTLY = ("cancel in stream", "cancel at the end")


def keys(limits: str) -> str:
    return f"auth: {{keys: [{{name: k, key: secret-key-1, limits: {limits}}}, {{name: other, key: secret-key-2}}]}}"


async def begin(gateway: Running, **more: Any) -> WireClient:
    return await gateway.send(chat(stream=True, **more), **KEY)


def left(gateway: Running, quota: Quota = Quota.TOKENS) -> float:
    standing = gateway.app.leases.quotas.standing("k")
    assert standing is not None
    return standing[1].left[quota]


async def suffer(gateway: Running, engine: EngineDouble, fault: str) -> None:
    """One request that ends in this fault."""
    if fault == "bad JSON":
        assert (await gateway.ask(b"{", **KEY)).status == 400
    elif fault == "unknown model":
        assert (await gateway.ask(chat(model="nobody"), **KEY)).status == 404
    elif fault == "server error":
        engine.now_plays(json_answer({"error": {"message": "x", "code": 500}}, 500))
        assert (await gateway.ask(chat(), **KEY)).status == 502
    elif fault == "time-out":
        engine.now_plays(silent())
        assert (await gateway.ask(chat(stream=True), **KEY)).status == 504
    else:
        words = ("a", "b", "c") if fault == "cancel in stream" else ("a",)
        engine.now_plays(says(*words, gap=0.05))
        client = await begin(gateway)
        await client.head()
        data = await client.chunk()
        while fault == "cancel at the end" and b"[DONE]" not in data:
            data = await client.chunk()
        client.close()


@pytest.mark.parametrize("fault", [*COSTLESS, *COSTLY])
async def test_x6_fifty_of_any_kind_of_failure_leave_a_key_all_it_may_use(start: Start, fault: str) -> None:
    engine = vllm(says("ok"))
    gateway = await start(
        {"b1": engine},
        b1={"timeouts": "{first_token: 50ms}"},
        rest="\n".join(
            (
                keys(f"{{running: 4, tokens: {FULL}/day, requests: 1000/day}}"),
                "health: {probe: 200ms, breaker: {failures: 1000}}",
                "retry: {attempts: 0}",
            )
        ),
    )
    free = asyncio.Event()
    if fault == "cancel in queue":
        engine.now_plays(says("a", "b", until=free))
        runs = [await begin(gateway) for _ in range(4)]
        await engine.asked_for(4)
        charged = left(gateway)
        waits = [await begin(gateway) for _ in range(50)]
        await gateway.until(lambda: gateway.queued == 50)
        for client in waits:
            client.close()
        await gateway.until(lambda: gateway.queued == 0)
        assert charged <= left(gateway) <= charged + SLACK
        for client in runs:
            client.close()
    else:
        for _ in range(10):
            await asyncio.gather(*(suffer(gateway, engine, fault) for _ in range(5)))
    await gateway.idle()
    if fault in COSTLESS and fault != "cancel in queue":
        assert (left(gateway), left(gateway, Quota.REQUESTS)) == (FULL, 1000)
    elif fault == "cancel at the end":
        assert FULL - 50 * 21 <= left(gateway) <= FULL - 50 * 21 + SLACK
    elif fault == "cancel in stream":
        assert FULL - 50 * 200 < left(gateway) < FULL - 50
        assert 950 <= left(gateway, Quota.REQUESTS) < 951
    free = asyncio.Event()
    engine.now_plays(says("a", "b", until=free))
    already = len(engine.asked)
    clients = [await begin(gateway) for _ in range(4)]
    await engine.asked_for(already + 4)
    clients.append(await begin(gateway))
    await gateway.until(lambda: gateway.queued == 1)
    free.set()
    for client in clients:
        assert (await client.reply()).complete


async def test_an_answer_tells_what_is_left_as_clients_of_its_surface_read_it(start: Start) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine}, rest=keys("{tokens: 2M/hour, requests: 60/min}"))
    reply = await gateway.ask(chat(), **KEY)
    assert (reply.status, reply.headers["x-ratelimit-limit-tokens"]) == (200, "2000000")
    assert 1_990_000 < int(reply.headers["x-ratelimit-remaining-tokens"]) < 2_000_000
    assert reply.headers["x-ratelimit-reset-tokens"].endswith("s")
    assert reply.headers["x-ratelimit-limit-requests"] == "60"
    assert reply.headers["x-ratelimit-remaining-requests"] == "59"
    body = {"model": "tiny", "max_tokens": 16, "messages": [{"role": "user", "content": "hi"}]}
    reply = await gateway.ask(body, "/v1/messages", **KEY)
    assert reply.headers["anthropic-ratelimit-requests-limit"] == "60"
    assert reply.headers["anthropic-ratelimit-requests-remaining"] in ("58", "59")
    full = datetime.fromisoformat(reply.headers["anthropic-ratelimit-tokens-reset"])
    assert abs(full - datetime.now(UTC)) < timedelta(minutes=1)
    assert not [name for name in reply.headers if name.startswith("x-ratelimit")]


async def test_refusals_tell_it_too_and_keys_without_rates_are_told_nothing(start: Start) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine}, rest=keys("{tokens: 2M/hour}"))
    for body, status in ((b"{", 400), (chat(model="nobody"), 404)):
        reply = await gateway.ask(body, **KEY)
        assert (reply.status, reply.headers["x-ratelimit-remaining-tokens"]) == (status, "2000000")
        assert reply.headers["x-ratelimit-reset-tokens"] == "0s"
        assert not [name for name in (await gateway.ask(body, **OTHER)).headers if "ratelimit" in name]
    assert not [name for name in (await gateway.ask(chat(), **OTHER)).headers if "ratelimit" in name]


async def test_over_the_limit_by_long_is_429_with_the_limit_and_the_time(start: Start) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine}, rest=keys("{requests: 2/day}"))
    assert [(await gateway.ask(chat(), **KEY)).status for _ in range(2)] == [200, 200]
    for path, body in (("/v1/chat/completions", chat()), ("/v1/messages", chat(max_tokens=5))):
        reply = await gateway.ask(body, path, **KEY)
        assert reply.status == 429
        assert "2 requests per day (limit requests); 0 are left" in reply.error["message"]
        assert 43_000 < int(reply.headers["retry-after"]) <= 2 * 43_200
        assert reply.headers["x-should-retry"] == "false"
    assert reply.headers["anthropic-ratelimit-requests-remaining"] == "0"
    reply = await gateway.ask(chat(), **KEY)
    assert (reply.error["code"], reply.error["reason"]) == ("over_quota", "over_quota")
    assert (await gateway.ask(chat(), **OTHER)).status == 200
    assert len(engine.asked) == 3
    series = 'kvgate_quota_left{client="k",limit="requests"}'
    assert 0 <= await gateway.value(series) < 0.1
    assert await gateway.value('kvgate_quota_limit{client="k",limit="requests"}') == 2
    assert await gateway.value('kvgate_refusals_total{reason="over_quota"}') == 3


async def test_over_the_limit_by_a_moment_waits_and_others_do_not(start: Start) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine}, rest=keys("{requests: 1/s}"))
    assert (await gateway.ask(chat(), **KEY)).status == 200
    waits = asyncio.create_task(gateway.ask(chat(), **KEY))
    await gateway.until(lambda: gateway.queued == 1)
    assert (await gateway.ask(chat(), **OTHER)).status == 200
    assert not waits.done()
    assert (await waits).status == 200


async def test_g3_a_reload_changes_the_rates_of_running_buckets_at_once(start: Start) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine}, rest=keys("{requests: 2/day}"))
    line = backend("b1", engine.url, engine.flavour)
    assert [(await gateway.ask(chat(), **KEY)).status for _ in range(3)] == [200, 200, 429]
    assert (await gateway.reload(config(line, rest=keys("{requests: 4/day}")))).status == 200
    assert [(await gateway.ask(chat(), **KEY)).status for _ in range(3)] == [200, 200, 429]
    assert (await gateway.reload(config(line, rest=keys("{requests: 3/day}")))).status == 200
    assert int((await gateway.ask(chat(), **KEY)).headers["retry-after"]) > 50_000  # two are to come back, not one
    assert (await gateway.reload(config(line, rest=keys("{running: 1}")))).status == 200
    reply = await gateway.ask(chat(), **KEY)
    assert (reply.status, [name for name in reply.headers if "ratelimit" in name]) == (200, [])


async def test_the_administrator_sees_what_is_left(start: Start) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine}, rest=keys("{running: 3, tokens: 2M/hour}"))
    assert (await gateway.ask(chat(), **KEY)).status == 200
    await gateway.idle()
    first, second = (await gateway.admin("/admin/keys"))["keys"]
    assert (first["name"], first["running"], first["running_limit"]) == ("k", 0, 3)
    (limit,) = first["limits"]
    assert (limit["name"], limit["amount"], limit["seconds"]) == ("tokens", 2_000_000, 3600)
    assert 2_000_000 - 21 <= limit["left"] <= 2_000_000
    assert limit["full_in"] <= 21 * 3600 / 2_000_000
    assert second == {"name": "other", "running": 0, "running_limit": None, "limits": []}
