"""Engines, and what stands before them, that say 200 and mean something else."""

from __future__ import annotations

import json

import pytest

from tests.edge.wire_client import Reply
from tests.relay.fake_engine import DONE, FINISH, ROLE, Script, json_answer, raw, silent, sse, token
from tests.shell.engine_double import EngineDouble, openai_compatible, page, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import events

CHOICE = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
ANSWER = {"id": "c", "object": "chat.completion", "model": "tiny", "choices": [CHOICE]}
NO_ANSWERS: dict[str, Script] = {
    "html": page(b"<html>sign in: TOPSECRET</html>", 200, "text/html"),
    "html as json": page(b"<html>sign in: TOPSECRET</html>"),
    "nothing": page(b""),
    "204": raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "299": page(ANSWER, 299),
    "201": page(ANSWER, 201),
    "{}": page({}),
    "no choices": page({**ANSWER, "choices": []}),
    "choices of another kind": page({**ANSWER, "choices": [1]}),
    "a list": page([ANSWER]),
    "half": page(json.dumps(ANSWER).encode()[:-5]),
    "error": page({"error": {"message": "boom"}}),
    "error 500": page({"error": {"message": "boom", "code": 500}}),
    "a cut stream": sse(ROLE, token("a")),
    "a stream with an error": sse(ROLE, token("a"), b'data: {"error":{"message":"boom","code":500}}\n\n', DONE),
    "a stream as json": page(ROLE + token("a") + FINISH + DONE),
}


def said(reply: Reply) -> str:
    return str(reply.json["choices"][0]["message"]["content"])


def double(flavour: str, *scripts: Script) -> EngineDouble:
    return vllm(*scripts) if flavour == "vllm" else openai_compatible(*scripts, model="tiny")


@pytest.mark.parametrize("flavour", ["vllm", "openai"])
@pytest.mark.parametrize("kind", NO_ANSWERS)
async def test_what_is_no_answer_is_a_failure(start: Start, kind: str, flavour: str) -> None:
    gateway = await start({"b1": double(flavour, NO_ANSWERS[kind])}, rest="retry: {attempts: 1}")
    reply = await gateway.chat()
    assert reply.status == 502
    assert reply.error["type"] == "upstream_error"
    assert b"TOPSECRET" not in reply.body
    await gateway.idle()
    assert await gateway.value('kvgate_requests_total{backend="b1",model="tiny",outcome="completed"}') in (None, 0)


@pytest.mark.parametrize("kind", ["html", "nothing", "204", "{}", "a cut stream"])
async def test_another_backend_answers_instead(start: Start, kind: str) -> None:
    gateway = await start({"b1": vllm(NO_ANSWERS[kind]), "b2": vllm(says("fine"))})
    for _ in range(4):
        reply = await gateway.chat()
        assert (reply.status, said(reply)) == (200, "fine")


async def test_the_clients_own_fault_stays_its_own(start: Start) -> None:
    refusal = page({"error": {"message": "bad grammar", "type": "BadRequestError", "code": 400}})
    gateway = await start({"b1": double("openai", refusal)})
    reply = await gateway.chat()
    assert (reply.status, reply.error["message"]) == (400, "bad grammar")


async def test_a_stream_that_nobody_asked_for_becomes_an_answer(start: Start) -> None:
    gateway = await start({"b1": double("openai", sse(ROLE, token("Hel"), token("lo"), FINISH, DONE))})
    reply = await gateway.chat()
    assert (reply.status, said(reply)) == (200, "Hello")
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_engines_fields_never_pass_for_the_gateways(start: Start, stream: bool) -> None:
    evil = {
        "X-Kvgate-Backend": "evil",
        "X-Kvgate-Decision": "evil",
        "X-Kvgate-Dropped": "evil",
        "Server-Timing": "evil",
        "X-Should-Retry": "evil",
        "Location": "http://evil",
        "Retry-After": "evil",
        "X-Engine-Key": "evil",
        "Set-Cookie": "evil",
        "Access-Control-Allow-Origin": "evil",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in evil.items()).encode()
    if stream:
        body = ROLE + token("a") + FINISH + DONE
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n" % len(body)
        script = raw(head + lines + b"X-Request-Id: r1\r\n\r\n", body)
    else:
        script = json_answer(ANSWER, headers=[*evil.items(), ("X-Request-Id", "r1")])
    gateway = await start({"b1": double("openai", script)})
    reply = await gateway.chat(stream=stream)
    assert reply.status == 200
    assert "evil" not in repr(reply.headers)
    assert reply.headers["x-kvgate-backend"] == "b1"
    assert reply.headers["x-kvgate-decision"].startswith("req-")
    assert reply.headers["x-request-id"] == "r1"


async def test_figures_that_can_not_be_true_are_not_counted(start: Start) -> None:
    untrue = [
        {"prompt_tokens": 2 * 10**18, "completion_tokens": 10**18},
        {"prompt_tokens": -500, "completion_tokens": -3},
        {"prompt_tokens": 10.5, "completion_tokens": "3"},
        {"prompt_tokens": 9_000_000, "completion_tokens": 100_000},
    ]
    gateway = await start({"b1": double("openai", *(json_answer({**ANSWER, "usage": usage}) for usage in untrue))})
    for _ in untrue:
        assert (await gateway.chat(max_tokens=50)).status == 200
    more = {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 10**9}}
    gateway_two = await start({"b1": double("openai", json_answer({**ANSWER, "usage": more}))})
    assert (await gateway_two.chat()).status == 200
    for one, prompt, completion in ((gateway, 0, 0), (gateway_two, 10, 3)):
        await one.idle()
        told = {
            kind: await one.value(f'kvgate_tokens_total{{backend="b1",kind="{kind}",model="tiny"}}') or 0
            for kind in ("prompt", "completion", "cached")
        }
        assert told == {"prompt": prompt, "completion": completion, "cached": 0}


async def test_an_event_that_no_client_can_read_is_not_passed_on(start: Start) -> None:
    bad = b"data: {bad json\n\n"
    before = sse(ROLE, bad, token("a"), FINISH, DONE)
    after = sse(ROLE, token("a"), bad, token("b"), FINISH, DONE)
    first = await start({"b1": vllm(before), "b2": vllm(says("fine"))})
    for _ in range(3):
        reply = await first.chat(stream=True)
        assert reply.status == 200
        assert "fine" in reply.body.decode()
        assert b"bad json" not in reply.body
    second = await start({"b1": vllm(after)})
    reply = await second.chat(stream=True)
    assert reply.status == 200
    assert not reply.complete
    assert b"bad json" not in reply.body
    assert b"[DONE]" not in reply.body
    assert events(reply.body)[-1]["error"]["message"] == "the engine sent an event that is not JSON"


async def test_a_silent_engine_holds_a_whole_answer_no_longer_than_its_limits(start: Start) -> None:
    limits = "{connect: 1s, first_token: 200ms, token_gap: 100ms}"
    gateway = await start({"b1": double("openai", silent())}, b1={"timeouts": limits}, rest="retry: {attempts: 1}")
    reply = await gateway.chat(max_tokens=5)
    assert reply.status == 504
    assert reply.error["code"] == "upstream_timeout"
    assert "limit: first_token, and token_gap for each token" in reply.error["message"]
    await gateway.idle()
