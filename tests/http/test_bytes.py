from __future__ import annotations

import json

import pytest

from tests.relay.fake_engine import DONE, FINISH, ROLE, json_answer, sse
from tests.shell.engine_double import llama_cpp, openai_compatible, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import chat, events

ODD = (
    '{ "model" :"NAME",\n\t"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object",'
    '"properties":{"zebra":{"type":"string"},"apple":{"type":"number"},"mango":{"type":"integer"}}}}},'
    '"messages" : [ {"content":"é and \\u00e9","role":"user"} ]  , "temperature":1.0, "top_p":0.1000000000000000055,'
    '"x_big":12345678901234567890123, "stream":true,"stream_options":{"include_usage":true} }'
)
ROUTE = "models: [{name: code, serves: org/m-awq}]"


async def test_k3_the_body_reaches_the_engine_byte_for_byte_but_for_the_model(start: Start) -> None:
    engine = openai_compatible(says("ok"), model="org/m-awq")
    gateway = await start({"b1": engine}, rest=ROUTE)
    reply = await gateway.ask(ODD.replace("NAME", "code").encode())
    assert reply.status == 200
    assert engine.asked[0].body == ODD.replace("NAME", "org/m-awq").encode()


async def test_a_body_that_needs_no_edit_is_not_touched(start: Start) -> None:
    engine = openai_compatible(says("ok"), model="NAME")
    gateway = await start({"b1": engine})
    await gateway.ask(ODD.encode())
    assert engine.asked[0].body == ODD.encode()


@pytest.mark.parametrize("stream", [True, False])
async def test_n1_the_engine_gets_its_own_name_for_a_model_and_the_client_reads_back_the_one_it_sent(
    start: Start, stream: bool
) -> None:
    engine = vllm(says("a", "b", "c"), model="org/m-awq")
    gateway = await start({"b1": engine}, rest=ROUTE)
    reply = await gateway.chat(model="code", stream=stream)
    assert engine.body()["model"] == "org/m-awq"
    shown = [event for event in events(reply.body) if event != "[DONE]"] if stream else [reply.json]
    assert {event["model"] for event in shown} == {"code"}
    assert reply.headers["x-kvgate-backend"] == "b1"


async def test_n2_models_with_a_slash_are_found_raw_and_encoded(start: Start) -> None:
    gateway = await start({"b1": vllm(model="org/name", window=4096)})
    raw, encoded = await gateway.get("/v1/models/org/name"), await gateway.get("/v1/models/org%2Fname")
    assert raw.status == encoded.status == 200
    assert raw.json == encoded.json
    assert raw.json["id"] == "org/name"
    assert (await gateway.get("/v1/models")).json["data"] == [raw.json]
    assert (await gateway.get("/v1/models/org")).status == 404


async def test_n3_an_unknown_model_is_404_with_the_names_to_use_and_no_engine_is_asked(start: Start) -> None:
    engine = vllm()
    gateway = await start({"b1": engine})
    reply = await gateway.chat(model="gpt-4o-mimi")
    assert (reply.status, reply.error["code"], reply.error["param"]) == (404, "model_not_found", "model")
    assert "tiny" in reply.error["message"]
    assert engine.asked == []


async def test_n3_a_configured_model_without_a_working_backend_is_503_not_404(start: Start) -> None:
    engine = vllm()
    gateway = await start({"b1": engine}, rest="models: [{name: m, serves: tiny}]")
    await engine.__aexit__()
    await gateway.until(lambda: str(gateway.health("b1")) == "down")
    reply = await gateway.chat(model="m")
    assert (reply.status, reply.error["code"]) == (503, "no_backend_available")


def delta(**fields: object) -> bytes:
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': fields, 'finish_reason': None}]})}\n\n".encode()


async def test_r1_reasoning_and_unknown_fields_of_a_stream_arrive(start: Start) -> None:
    sent = [ROLE, delta(reasoning="hm"), delta(reasoning_content="so"), delta(content="x"), delta(x_foo=[1]), FINISH]
    gateway = await start({"b1": vllm(sse(*sent, DONE))})
    assert (await gateway.chat(stream=True)).body == b"".join([*sent, DONE])


@pytest.mark.parametrize("make", [vllm, llama_cpp])
async def test_r2_fragments_of_parallel_tool_calls_are_passed_as_they_are(start: Start, make: type) -> None:
    def call(index: int, arguments: str, **more: object) -> bytes:
        return delta(tool_calls=[{"index": index, "function": {"name": None, "arguments": arguments}, **more}])

    piece = {"tool_calls": [{"index": 1, "function": {"arguments": '"}'}}]}
    last = json.dumps({"choices": [{"index": 0, "delta": piece, "finish_reason": "tool_calls"}]})
    sent = [
        ROLE,
        call(0, '{"a', id="c0"),
        call(1, '{"b', id="c1"),
        call(0, '":"1'),
        call(1, '":"2'),
        delta(tool_calls=[{"index": 0}]),
        call(0, '"}'),
        f"data: {last}\n\n".encode(),
    ]
    gateway = await start({"b1": make(sse(*sent, DONE), model="m")})
    reply = await gateway.chat(model="m", stream=True)
    assert reply.body == b"".join([*sent, DONE])
    arguments = {0: "", 1: ""}
    for event in events(reply.body)[1:-1]:
        for part in event["choices"][0]["delta"]["tool_calls"]:
            arguments[part["index"]] += part.get("function", {}).get("arguments", "")
    assert [json.loads(text) for text in arguments.values()] == [{"a": "1"}, {"b": "2"}]


async def test_r3_fields_of_one_engine_pass_and_those_that_steer_its_scheduler_do_not(start: Start) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine})
    steering = {"priority": -100, "request_id": "same", "cache_salt": "x"}
    passing = {"min_p": 0.1, "chat_template_kwargs": {"enable_thinking": False}, "x_unknown": [1]}
    reply = await gateway.ask(chat(**steering, **passing))
    assert reply.status == 200
    seen = engine.body()
    assert {name: seen[name] for name in passing} == passing
    assert not steering.keys() & seen.keys()
    assert set(reply.headers["x-kvgate-dropped"].split(", ")) == steering.keys()


async def test_r3_a_client_may_not_pick_a_slot_of_llama_cpp(start: Start) -> None:
    engine = llama_cpp(says("ok"))
    gateway = await start({"b1": engine})
    reply = await gateway.ask(chat(model="smollm2", id_slot=1))
    assert engine.body()["id_slot"] == 0, "the gateway's own choice"
    assert reply.headers["x-kvgate-dropped"] == "id_slot"


async def test_an_answer_with_fields_nobody_knows_reaches_the_client_whole(start: Start) -> None:
    answer = {
        "id": "c",
        "model": "tiny",
        "x_new": {"deep": [1.0, 1e300]},
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
    }
    gateway = await start({"b1": vllm(json_answer(answer))})
    assert (await gateway.chat()).body == json.dumps(answer).encode()
