from __future__ import annotations

import asyncio
import json
import re

from gateway.core.snapshot import Health
from tests.relay.fake_engine import DONE, FINISH, ROLE, STREAM_HEAD, Request, Wire, chunk, json_answer, token
from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start

PROMPT = "a very private prompt of 1789"


def series(text: str) -> set[str]:
    return {line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")}


async def test_m1_names_from_the_outside_world_make_no_series(start: Start) -> None:
    gateway = await start({"b1": vllm(says("ok"))})
    await gateway.chat()
    await gateway.chat(model="nobody")
    before = series(await gateway.metrics())
    client = await gateway.connect()
    for number in range(300):
        body = json.dumps({"model": f"made-up-{number}", "messages": [{"role": "user", "content": "x"}]}).encode()
        assert (await client.request("POST", "/v1/chat/completions", body)).status == 404
        assert (await client.request("GET", f"/nowhere/{number}")).status == 404
    after = series(await gateway.metrics())
    assert after == before
    assert "made-up" not in "".join(after)
    assert await gateway.value('kvgate_refusals_total{reason="unknown_model"}') == 301
    assert await gateway.value('kvgate_requests_total{backend="",model="other",outcome="refused"}') == 301


def staged(*steps: tuple[float, bytes]) -> object:
    async def script(_request: Request, wire: Wire) -> None:
        await wire.send(STREAM_HEAD)
        for seconds, event in steps:
            await asyncio.sleep(seconds)
            await wire.send(chunk(event))
        await wire.send(chunk(FINISH), chunk(DONE), b"0\r\n\r\n")

    return script


async def test_m2_the_first_token_is_the_first_with_something_in_it(start: Start) -> None:
    reasoning = b'data: {"choices":[{"index":0,"delta":{"reasoning":"hm"},"finish_reason":null}]}\n\n'
    engine = vllm(staged((0.02, ROLE), (0.3, reasoning), (0.4, token("x"))))  # type: ignore[arg-type]
    gateway = await start({"b1": engine})
    await gateway.chat(stream=True)
    await gateway.idle()
    ttft = await gateway.value('kvgate_ttft_seconds_sum{backend="b1",model="tiny"}')
    assert 0.3 <= ttft < 0.6


async def test_m2_a_tool_call_is_a_first_token_and_an_empty_answer_has_none(start: Start) -> None:
    call = b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c"}]},"finish_reason":null}]}\n\n'
    engine = vllm(staged((0.0, ROLE), (0.2, call)), staged((0.0, ROLE)))  # type: ignore[arg-type]
    gateway = await start({"b1": engine})
    count, total = ('kvgate_ttft_seconds_%s{backend="b1",model="tiny"}' % kind for kind in ("count", "sum"))  # noqa: UP031
    await gateway.chat(stream=True)
    await gateway.idle()
    assert await gateway.value(count) == 1
    assert await gateway.value(total) >= 0.2
    await gateway.chat(stream=True)
    await gateway.idle()
    assert await gateway.value(count) == 1


async def test_time_in_the_queue_is_told_apart(start: Start) -> None:
    engine = vllm(says("a", "b", gap=0.3))
    gateway = await start({"b1": engine}, b1={"running": "1"})
    await asyncio.gather(gateway.chat("1", stream=True), gateway.chat("2", stream=True))
    await gateway.idle()
    assert await gateway.value('kvgate_queue_seconds_sum{backend="b1",model="tiny"}') >= 0.3
    assert await gateway.value('kvgate_ttft_seconds_sum{backend="b1",model="tiny"}') < 0.3


async def test_m3_clients_that_leave_are_no_failures(start: Start) -> None:
    engine = vllm(says(*["t"] * 50, gap=0.02))
    gateway = await start({"b1": engine})

    async def leave() -> None:
        client = await gateway.begin_chat(stream=True)
        await client.head()
        await client.chunk()
        client.close()

    await asyncio.gather(*(leave() for _ in range(20)))
    await gateway.idle()
    text = await gateway.metrics()
    assert 'kvgate_requests_total{backend="b1",model="tiny",outcome="client_closed"} 20.0' in text
    assert not re.findall(r"^kvgate_backend_failures_total\{.*\} [^0]", text, re.MULTILINE)
    assert gateway.health("b1") is Health.UP
    assert b"Traceback" not in gateway.lines.data
    assert {line["status"] for line in await gateway.access()} == {499}
    assert not [line for line in await gateway.log_lines() if line["level"] in ("warning", "error")]
    assert await gateway.value('kvgate_tokens_total{backend="b1",kind="completion",model="tiny"}') >= 20


async def test_every_request_has_one_line_with_what_a_person_asks_first(start: Start) -> None:
    gateway = await start({"b1": vllm(says("a", "b", prompt=9, cached=4))})
    await gateway.chat(PROMPT, stream=True)
    await gateway.chat(PROMPT, model="nobody")
    await gateway.ask(b"{")
    served, unknown, broken = await gateway.access()
    assert served["backend"] == "b1"
    assert (served["status"], served["outcome"]) == (200, "completed")
    assert (served["prompt_tokens"], served["completion_tokens"], served["cached_tokens"]) == (9, 2, 4)
    assert served["ttft_s"] > 0
    assert (unknown["status"], unknown["reason"]) == (404, "unknown_model")
    assert (broken["status"], broken["outcome"]) == (400, "refused")


async def test_a_prompt_is_written_nowhere(start: Start) -> None:
    gateway = await start({"b1": vllm(says("a"))})
    reply = await gateway.chat(PROMPT)
    record = await gateway.admin(f"/admin/decisions/{reply.headers['x-kvgate-decision']}")
    assert "tiny" in json.dumps(record)
    await gateway.log_lines()
    shown = json.dumps(record).encode() + gateway.lines.data + (await gateway.metrics()).encode()
    assert b"1789" not in shown
    assert b"private" not in shown


async def test_a_decision_can_be_asked_for_by_the_id_that_the_answer_names(start: Start) -> None:
    engines = {"b1": vllm(says("a")), "b2": vllm(says("a"), model="other")}
    gateway = await start(engines)
    reply = await gateway.chat()
    record = await gateway.admin(f"/admin/decisions/{reply.headers['x-kvgate-decision']}")
    text = json.dumps(record)
    assert "b1" in text
    assert "not_served" in text  # why the other fell out
    assert (await gateway.get("/admin/decisions/req-nothing", admin=True)).status == 404


async def test_a_failed_attempt_can_be_explained(start: Start) -> None:
    failing = vllm(json_answer({"error": {"message": "boom", "code": 500}}, 500))
    gateway = await start({"b1": failing, "b2": vllm(says("fine"))}, b2={"device": "dgx-spark"})
    reply = await gateway.chat()
    assert reply.status == 200
    record = await gateway.admin(f"/admin/decisions/{reply.headers['x-kvgate-decision']}")
    assert [(d["backend"], d.get("failed")) for d in record["decisions"]] == [("b1", "server"), ("b2", None)]
