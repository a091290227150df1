"""Answers that engines keep: gone on from, fetched and deleted where they are kept, and only by whom they are for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.edge.wire_client import Reply, request
from tests.relay.fake_engine import Request, Script, Wire, chunk, json_answer, sse
from tests.shell.engine_double import EngineDouble, openai_compatible, page, vllm
from tests.shell.fixtures import Start
from tests.shell.running import Running

KEYS = "auth: {keys: [{name: ann, key: key-of-ann-0123456789}, {name: bob, key: key-of-bob-0123456789}]}"


def response(name: str, model: str = "tiny", **more: Any) -> dict[str, Any]:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    return {"id": name, "object": "response", "model": model, "status": "completed", "output": [said], **more}


def answers(name: str) -> Script:
    async def script(got: Request, wire: Wire) -> None:
        asked = json.loads(got.body)
        if not asked.get("stream"):
            await json_answer(response(name))(got, wire)
            return
        events = (
            {"type": "response.created", "response": response(name, status="in_progress", output=[])},
            {"type": "response.output_text.delta", "item_id": "m", "delta": "hi"},
            {"type": "response.completed", "response": response(name)},
        )
        await sse(*(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events))(got, wire)

    return script


async def ask(gateway: Running, who: str = "ann", **more: Any) -> Reply:
    body = {"model": "tiny", "input": "hello", **more}
    return await gateway.ask(body, "/v1/responses", authorization=f"Bearer key-of-{who}-0123456789")


async def fetch(gateway: Running, path: str, who: str = "ann", method: str = "GET") -> Reply:
    client = await gateway.connect()
    await client.send(request(method, path, b"", authorization=f"Bearer key-of-{who}-0123456789"))
    return await client.reply()


async def two(start: Start) -> tuple[Running, dict[str, EngineDouble]]:
    engines = {name: vllm(answers(f"resp_of_{name}")) for name in ("b1", "b2")}
    return await start(engines, rest=KEYS), engines


@pytest.mark.parametrize("stream", [False, True])
async def test_a_conversation_goes_on_where_its_last_answer_is_kept(start: Start, stream: bool) -> None:
    gateway, engines = await two(start)
    first = await ask(gateway, stream=stream)
    keeper = first.headers["x-kvgate-backend"]
    for _ in range(6):
        reply = await ask(gateway, stream=stream, previous_response_id=f"resp_of_{keeper}")
        assert (reply.status, reply.headers["x-kvgate-backend"]) == (200, keeper)
    assert engines[keeper].body()["previous_response_id"] == f"resp_of_{keeper}"


async def test_another_s_answer_is_nobody_s(start: Start) -> None:
    gateway, engines = await two(start)
    keeper = (await ask(gateway)).headers["x-kvgate-backend"]
    seen = len(engines[keeper].asked)
    reply = await ask(gateway, "bob", previous_response_id=f"resp_of_{keeper}")
    assert (reply.status, reply.json["error"]["code"]) == (400, "previous_response_not_found")
    assert (await fetch(gateway, f"/v1/responses/resp_of_{keeper}", "bob")).status == 404
    assert len(engines[keeper].asked) == seen


async def test_a_kept_answer_is_fetched_under_the_client_s_name_for_the_model(start: Start) -> None:
    engine = vllm(answers("resp_1"), model="org/m")
    engine.pages["/v1/responses/resp_1"] = page(response("resp_1", "org/m"))
    gateway = await start({"b1": engine}, rest=f"{KEYS}\nmodels: [{{name: tiny, serves: org/m}}]")
    assert (await ask(gateway)).status == 200
    reply = await fetch(gateway, "/v1/responses/resp_1")
    assert (reply.status, reply.json) == (200, response("resp_1"))
    assert "/v1/responses/resp_1" in engine.probed


async def test_what_the_engine_does_not_keep_is_not_found(start: Start) -> None:
    gateway = await start({"b1": vllm(answers("resp_1"))}, rest=KEYS)
    assert (await ask(gateway)).status == 200
    for path in ("/v1/responses/resp_1", "/v1/responses/resp_2", "/v1/responses/..%2Fadmin"):
        reply = await fetch(gateway, path)
        assert (reply.status, reply.json["error"]["code"]) == (404, "response_not_found")


async def test_it_is_deleted_and_cancelled_where_it_is_kept(start: Start) -> None:
    engine = vllm(answers("resp_1"))
    gateway = await start({"b1": engine}, rest=KEYS)
    assert (await ask(gateway)).status == 200
    engine.now_plays(json_answer({"id": "resp_1", "status": "cancelled"}))
    assert (await fetch(gateway, "/v1/responses/resp_1/cancel", method="POST")).json["status"] == "cancelled"
    assert engine.asked[-1].line == "POST /v1/responses/resp_1/cancel HTTP/1.1"
    engine.now_plays(json_answer({"id": "resp_1", "deleted": True}))
    assert (await fetch(gateway, "/v1/responses/resp_1", method="DELETE")).json["deleted"] is True
    assert (await fetch(gateway, "/v1/responses/resp_1", method="DELETE")).status == 404


async def test_what_a_service_stores_is_not_to_be_had_of_an_engine_that_has_chat_alone(start: Start) -> None:
    engine = openai_compatible(model="tiny")
    engine.pages["/v1/responses"] = page({"error": {"message": "no such route"}}, 404)
    gateway = await start({"b1": engine}, rest=KEYS)
    reply = await ask(gateway, prompt={"id": "pmpt_9"})
    assert (reply.status, reply.json["error"]["code"]) == (400, "surface_not_offered")
    assert reply.json["error"]["param"] == "prompt"
    assert engine.asked == []


async def test_no_client_waits_on_a_keeper_that_says_nothing(start: Start) -> None:
    async def silent(_got: Request, wire: Wire) -> None:
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        await wire.send(chunk(b'{"id":'))
        await asyncio.sleep(30)

    engine = vllm(answers("resp_1"))
    engine.pages["/v1/responses/resp_1"] = silent
    gateway = await start({"b1": engine}, rest=KEYS, b1={"timeouts": "{token_gap: 300ms}"})
    assert (await ask(gateway)).status == 200
    reply = await fetch(gateway, "/v1/responses/resp_1")
    assert not reply.complete


async def test_what_nobody_is_known_to_own_is_refused(start: Start) -> None:
    """After a restart the gateway does not know whose an answer is, and the backend's key is everybody's."""
    gateway, engines = await two(start)
    reply = await ask(gateway, previous_response_id="resp_of_yesterday")
    assert (reply.status, reply.json["error"]["code"]) == (400, "previous_response_not_found")
    reply = await ask(gateway, conversation="conv_of_bob")
    assert (reply.status, reply.json["error"]["param"]) == (400, "conversation")
    assert not engines["b1"].asked
    assert not engines["b2"].asked


async def test_a_reference_that_is_no_reference_is_a_client_s_mistake(start: Start) -> None:
    gateway = await start({"b1": vllm(answers("resp_1"))}, rest=KEYS)
    body = b'{"model":"tiny","input":"x","previous_response_id":1e999}'
    reply = await gateway.ask(body, "/v1/responses", authorization="Bearer key-of-ann-0123456789")
    assert reply.status == 400
