from __future__ import annotations

import json

import pytest

from tests.relay.fake_engine import FakeEngine, raw
from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import chat

SECRET = "sk-test-SECRET123"
KEYS = "auth: {keys: [{name: k, key: the-right-key-1}]}"


async def test_a1_no_caller_decides_where_a_key_is_sent(start: Start) -> None:
    engine = vllm(says("ok"))
    async with FakeEngine(raw(then="close")) as listener:
        gateway = await start({"b1": engine}, b1={"key": "the-upstream-key"})
        naming = {"api_base": listener.url, "base_url": listener.url, "api_key": "theirs"}
        body = chat(**naming, extra_body={"api_base": listener.url})
        reply = await gateway.ask(body, x_api_base=listener.url, x_upstream_url=listener.url)
        assert reply.status == 200
        assert listener.requests == []
        assert listener.accepted == 0
        seen = engine.asked[0]
        assert not {*naming, "extra_body"} & json.loads(seen.body).keys()
        assert listener.url.encode() not in seen.body
        assert not [value for _, value in seen.headers if listener.url in value]


async def test_a1_the_same_written_with_escapes_is_not_let_through(start: Start) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine})
    body = rb'{"api\u005fbase":"http://x","model":"tiny","messages":[{"role":"user","content":"x"}]}'
    assert (await gateway.ask(body)).status == 200
    assert "api_base" not in engine.body()


async def test_a2_a_wrong_key_shows_nowhere(start: Start) -> None:
    gateway = await start({"b1": vllm()}, rest=KEYS)
    replies = [
        await gateway.ask(chat(), f"/v1/chat/completions?key={SECRET}", authorization=f"Bearer {SECRET}"),
        await gateway.ask(chat(), f"/{SECRET}?api_key={SECRET}", x_api_key=SECRET),
        await gateway.ask(chat(model=SECRET), authorization="Bearer the-right-key-1"),
    ]
    assert [reply.status for reply in replies] == [401, 404, 404]
    shown = [replies[0].raw + replies[0].body, replies[1].raw + replies[1].body]
    shown += [(await gateway.metrics()).encode(), json.dumps(await gateway.log_lines()).encode()]
    assert not [text for text in shown if SECRET.encode() in text]
    assert b"the-right-key-1" not in gateway.lines.data


async def test_a3_a_page_of_a_configured_origin_may_ask_and_reads_errors(start: Start) -> None:
    gateway = await start({"b1": vllm(says("ok"))}, rest=KEYS, server="origins: ['https://chat.example']")
    client = await gateway.connect()
    page = {"origin": "https://chat.example"}
    path = "/v1/chat/completions"
    preflight = await client.request("OPTIONS", path, **page, access_control_request_headers="authorization")
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == "https://chat.example"
    assert "authorization" in preflight.headers["access-control-allow-headers"]
    for headers, status in (({}, 401), ({"authorization": "Bearer the-right-key-1"}, 200)):
        reply = await gateway.ask(chat(), **page, **headers)
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (status, "https://chat.example")
    elsewhere = await client.request("OPTIONS", path, origin="https://else.example")
    assert (elsewhere.status, "access-control-allow-origin" in elsewhere.headers) == (405, False)


async def test_a3_no_page_may_by_default(start: Start) -> None:
    gateway = await start({"b1": vllm(says("ok"))})
    client = await gateway.connect()
    asked = await client.request("OPTIONS", "/v1/chat/completions", origin="https://chat.example")
    assert (asked.status, asked.error["code"]) == (405, "method_not_allowed")
    assert (await gateway.ask(chat(), origin="https://chat.example")).status == 403


async def test_a4_an_engine_sees_our_own_key_and_none_of_the_clients_credentials(start: Start) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine}, b1={"key": "the-upstream-key"}, rest=KEYS)
    reply = await gateway.ask(
        chat(),
        authorization="Bearer the-right-key-1",
        x_api_key="the-right-key-1",
        cookie="session=1",
        api_key="another",
        x_forwarded_for="1.2.3.4",
        forwarded="for=1.2.3.4",
        proxy_authorization="Basic abc",
    )
    assert reply.status == 200
    headers = dict(engine.asked[0].headers)
    assert headers["authorization"] == "Bearer the-upstream-key"
    assert headers["host"] == engine.url.removeprefix("http://")
    allowed = {"accept", "accept-encoding", "authorization", "content-length", "content-type", "host"}
    assert headers.keys() <= allowed | {"x-request-id", "endpoint-load-metrics-format", "connection", "user-agent"}


@pytest.mark.parametrize("field", ["authorization", "x_api_key", "api_key"])
async def test_p4_a_field_of_12_kilobytes_gets_the_answer_of_a_short_one(start: Start, field: str) -> None:
    gateway = await start({"b1": vllm(says("ok"))}, rest=KEYS)
    long = "k" * 12_000
    scheme = "Bearer " if field == "authorization" else ""
    refused = await gateway.ask(chat(), **{field: scheme + long})
    assert (refused.status, refused.error["code"]) == (401, "invalid_api_key")
    assert (await gateway.ask(chat(), **{field: f"{scheme}the-right-key-1"}, cookie=f"c={long}")).status == 200
    over = await gateway.ask(chat(), **{field: scheme + "k" * 33_000})
    assert (over.status, over.error["code"]) == (431, "headers_too_large")


async def test_a_key_may_use_only_its_models(start: Start) -> None:
    engines = {"b1": vllm(says("ok"), model="one"), "b2": vllm(says("ok"), model="two")}
    gateway = await start(engines, rest="auth: {keys: [{name: k, key: the-right-key-1, models: [one]}]}")
    auth = {"authorization": "Bearer the-right-key-1"}
    assert (await gateway.ask(chat(model="one"), **auth)).status == 200
    refused = await gateway.ask(chat(model="two"), **auth)
    assert (refused.status, refused.error["param"]) == (403, "model")
    client = await gateway.connect()
    listed = await client.request("GET", "/v1/models", **auth)
    assert [entry["id"] for entry in listed.json["data"]] == ["one"]


async def test_a_keys_own_context_cap_holds(start: Start) -> None:
    engine = vllm(window=65_536)
    rest = "auth: {keys: [{name: k, key: the-right-key-1, limits: {context: 1000}}]}"
    gateway = await start({"b1": engine}, rest=rest)
    reply = await gateway.ask(chat("word " * 5000), authorization="Bearer the-right-key-1")
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert "1000 tokens" in reply.error["message"]
    assert engine.asked == []
