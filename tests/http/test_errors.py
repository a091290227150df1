from __future__ import annotations

import asyncio

import pytest

from gateway.core.snapshot import Health
from tests.relay.fake_engine import DONE, json_answer, raw, sse
from tests.shell.engine_double import llama_cpp, page, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import chat


async def test_e1_a_sidecars_plain_text_becomes_a_json_error_without_its_words(start: Start) -> None:
    gateway = await start({"b1": vllm(page(b"upstream connect error or disconnect", 503, "text/plain"))})
    reply = await gateway.chat()
    assert reply.status in (502, 503)
    assert b"disconnect" not in reply.body
    assert reply.error["type"] in ("upstream_error", "overloaded_error")


async def test_e1_what_the_door_refuses_is_json_too(start: Start) -> None:
    gateway = await start({"b1": vllm()})
    reply = await gateway.get("/nonsense")
    assert (reply.status, reply.error["code"]) == (404, "not_found")
    client = await gateway.connect()
    reply = await client.request("PUT", "/v1/chat/completions")
    assert (reply.status, reply.error["code"]) == (405, "method_not_allowed")
    assert reply.headers["allow"] == "POST"


async def test_e2_busy_nothing_there_and_unknown_have_codes_of_their_own(start: Start) -> None:
    free = asyncio.Event()
    engine = vllm(says("x", "y", until=free))
    gateway = await start({"b1": engine}, b1={"running": "1"}, rest="queue: {length: 1}")
    runs = await gateway.begin_chat(stream=True)
    await engine.asked_for(1)
    waits = await gateway.begin_chat(stream=True)
    await gateway.until(lambda: gateway.queued == 1)
    busy = await gateway.chat()
    assert (busy.status, busy.error["code"]) == (429, "queue_full")
    assert "retry-after" in busy.headers
    unknown = await gateway.chat(model="nobody")
    assert (unknown.status, unknown.error["code"]) == (404, "model_not_found")
    free.set()
    assert (await runs.reply()).complete
    assert (await waits.reply()).complete
    await engine.__aexit__()
    await gateway.until(lambda: gateway.health("b1") is Health.DOWN)
    gone = await gateway.chat()
    assert (gone.status, gone.error["code"]) == (503, "no_backend_available")
    assert 1 <= int(gone.headers["retry-after"]) <= 59


async def test_e3_the_refused_are_told_different_times_to_come_back(start: Start) -> None:
    free = asyncio.Event()
    engine = vllm(says("x", "y", until=free))
    gateway = await start({"b1": engine}, b1={"running": "1"}, rest="queue: {length: 1}")
    held = [await gateway.begin_chat(stream=True)]
    await engine.asked_for(1)
    held.append(await gateway.begin_chat(stream=True))
    await gateway.until(lambda: gateway.queued == 1)
    replies = await asyncio.gather(*(gateway.chat() for _ in range(20)))
    assert {reply.status for reply in replies} == {429}
    waits = [int(reply.headers["retry-after"]) for reply in replies]
    assert all(1 <= wait <= 59 for wait in waits)
    assert len(set(waits)) > 1
    free.set()
    for client in held:
        assert (await client.reply()).complete


async def test_e3_an_engines_own_retry_after_reaches_the_client(start: Start) -> None:
    busy = json_answer({"error": {"message": "too many", "code": 429}}, 429, [("Retry-After", "7")])
    gateway = await start({"b1": vllm(busy)}, rest="queue: {wait: 200ms}")
    reply = await gateway.chat()
    assert reply.status == 429
    assert int(reply.headers["retry-after"]) >= 7


@pytest.mark.parametrize("code", [429, 503])
async def test_e2_the_only_engine_rests_because_it_is_full_and_not_because_it_failed(start: Start, code: int) -> None:
    refuses = json_answer({"error": {"message": "too many requests", "code": code}}, code, [("Retry-After", "30")])
    engine = vllm(refuses)
    gateway = await start({"b1": engine}, rest="queue: {wait: 2s}")
    for _ in range(5):
        reply = await gateway.chat()
        assert (reply.status, reply.error["code"]) == (429, "engine_busy")
        assert 1 <= int(reply.headers["retry-after"]) <= 59
    assert len(engine.asked) == 1
    assert gateway.health("b1") is Health.RESTING


@pytest.mark.parametrize("stream", [True, False])
async def test_e4_a_connection_closed_before_the_status_line_is_the_engines_fault(start: Start, stream: bool) -> None:
    gateway = await start({"b1": vllm(raw(then="close"))})
    reply = await gateway.chat(stream=stream)
    assert reply.status == 502
    assert reply.error["type"] == "upstream_error"


@pytest.mark.parametrize("stream", [True, False])
async def test_e4_silence_before_the_first_token_is_the_engines_fault(start: Start, stream: bool) -> None:
    gateway = await start(
        {"b1": llama_cpp(raw(then="silent"))}, b1={"timeouts": "{first_token: 200ms}"}, rest="retry: {attempts: 0}"
    )
    reply = await gateway.chat(model="smollm2", stream=stream)
    assert reply.status == 504
    assert reply.error["type"] == "upstream_error"


OLD_DIALECT = (
    b'error: {"code":400,"message":"the request exceeds the available context size","type":"invalid_request_error"}\n\n'
)


@pytest.mark.parametrize("body", [OLD_DIALECT, OLD_DIALECT.removeprefix(b"error: ")], ids=["field", "bare JSON"])
async def test_e5_errors_that_are_no_events_are_still_errors(start: Start, body: bytes) -> None:
    if body.startswith(b"{"):
        body = b'{"error":' + body.strip() + b"}\n\n"
    gateway = await start({"b1": llama_cpp(sse(body, DONE))})
    reply = await gateway.chat(model="smollm2", stream=True)
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")


async def test_e6_half_an_emoji_is_refused_by_name_and_the_connection_goes_on(start: Start) -> None:
    engine = vllm(says("fine"))
    gateway = await start({"b1": engine})
    client = await gateway.connect()
    body = b'{"model":"tiny","messages":[{"role":"user","content":"cut \\ud83d"}]}'
    reply = await client.request("POST", "/v1/chat/completions", body)
    assert reply.status == 400
    assert reply.error["param"]
    assert engine.asked == []
    good = b'{"model":"tiny","messages":[{"role":"user","content":"whole \\ud83d\\ude00"}]}'
    assert (await client.request("POST", "/v1/chat/completions", good)).status == 200


async def test_an_error_names_the_decision_that_explain_can_show(start: Start) -> None:
    gateway = await start({"b1": vllm(page({"error": {"message": "no", "code": 400}}, 400))})
    reply = await gateway.ask(chat())
    record = await gateway.admin(f"/admin/decisions/{reply.headers['x-kvgate-decision']}")
    assert record
