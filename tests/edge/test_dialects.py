"""Whatever goes wrong on a route is told in the words of whoever calls it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.edge.downstream import ClientDownstream
from gateway.edge.limits import EdgeLimits
from gateway.edge.routes import ROUTES
from gateway.errors import GatewayError, OverQuota, StreamBroken, Unavailable, UnknownModel
from gateway.wire.dialect import EVENT_STREAM, NDJSON, dialect_of
from gateway.wire.inbound import Inbound
from gateway.wire.surfaces import SURFACES
from tests.edge.conftest import Door, Opener
from tests.edge.wire_client import Reply, WireClient, request


def openai_code(body: Any) -> str:
    assert {"message", "type", "param", "code"} <= body["error"].keys()
    return str(body["error"]["code"])


def anthropic_code(body: Any) -> str:
    assert body["type"] == "error"
    assert {"type", "message"} <= body["error"].keys()
    return str(body["error"]["code"])


def ollama_code(body: Any) -> str:
    assert isinstance(body["error"], str)
    return str(body["code"])


READERS: dict[str, Callable[[Any], str]] = {
    "openai": openai_code,
    "responses": openai_code,
    "anthropic": anthropic_code,
    "ollama_chat": ollama_code,
    "ollama_generate": ollama_code,
}
SERVED = [route for route in ROUTES if route.name == "serve"]


def code(surface: str, reply: Reply) -> str:
    assert reply.headers["content-type"] == "application/json"
    return READERS[dialect_of(surface).name](reply.json)


@pytest.mark.parametrize("name", SURFACES)
async def test_e1_every_refusal_of_a_surface_is_in_its_dialect(open_door: Opener, name: str) -> None:
    door = await open_door(EdgeLimits(body=1000, header=2000, body_read=0.1))
    path = SURFACES[name].path

    async def ask(method: str = "POST", body: bytes = b"{}", **headers: str) -> Reply:
        client = await door.connect()
        return await client.request(method, path, body, **headers)

    refused = {
        "method_not_allowed": await ask("PUT"),
        "body_too_large": await ask(body=b"x" * 1001),
        "unsupported_content_encoding": await ask(content_encoding="rot13"),
        "headers_too_large": await ask(x_a="a" * 1500, x_b="b" * 1500),
        "expectation_failed": await ask(expect="pancakes"),
        "unsupported_transfer_encoding": await ask(transfer_encoding="gzip, chunked", body=b"0\r\n\r\n"),
        "body_timeout": await ask(content_length="100", body=b"{"),
    }
    assert {expected: code(name, reply) for expected, reply in refused.items()} == {each: each for each in refused}
    statuses = [405, 413, 415, 431, 417, 501, 408]
    assert [reply.status for reply in refused.values()] == statuses
    assert door.gateway.seen == []


@pytest.mark.parametrize("route", SERVED, ids=lambda route: route.template)
async def test_e1_a_missing_key_is_told_in_the_dialect(open_door: Opener, route: Any) -> None:
    door = await open_door(keys=True)
    client = await door.connect()
    reply = await client.request("POST", route.template, b"{}")
    assert (reply.status, code(route.surface, reply)) == (401, "invalid_api_key")
    assert reply.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize(
    "error",
    [
        UnknownModel("no such model", param="model", decision_id="d-7"),
        OverQuota("later", retry_after=7.0, decision_id="d-7"),
        Unavailable("nobody works", retry_after=7.0, decision_id="d-7"),
    ],
    ids=lambda error: error.code,
)
async def test_e1_what_the_pipeline_refuses_is_told_in_the_dialect(door: Door, name: str, error: GatewayError) -> None:
    async def refuse(inbound: Inbound, down: ClientDownstream) -> None:
        raise error

    door.gateway.behave = refuse
    client = await door.connect()
    reply = await client.request("POST", SURFACES[name].path, b"{}")
    assert (reply.status, code(name, reply)) == (error.status, error.code)
    assert reply.headers["x-kvgate-decision"] == "d-7"
    assert reply.headers.get("retry-after") == ("7" if error.retry_after else None)


STREAMS = {"chat": EVENT_STREAM, "responses": EVENT_STREAM, "messages": EVENT_STREAM, "ollama_chat": NDJSON}


def last_event(surface: str, body: bytes) -> Any:
    if STREAMS[surface] == NDJSON:
        assert body.endswith(b"\n")
        return json.loads(body.splitlines()[-1])
    assert body.endswith(b"\n\n")
    events = [dict(line.split(b": ", 1) for line in event.split(b"\n")) for event in body.strip().split(b"\n\n")]
    told = [event for event in events if event.get(b"event", b"error") == b"error" and b"data" in event]
    if surface == "responses":  # Codex reads this one
        assert events[-1][b"event"] == b"response.failed"
        assert json.loads(events[-1][b"data"])["response"]["error"]["message"]
    assert len(told) == 1
    return json.loads(told[0][b"data"])


@pytest.mark.parametrize("name", STREAMS)
async def test_s3_s8_a_stream_begun_with_keepalives_ends_in_an_error_of_its_dialect(door: Door, name: str) -> None:
    async def begin_and_fail(inbound: Inbound, down: ClientDownstream) -> None:
        down.start(200, (("content-type", down.dialect.stream_type),), None)
        for _ in range(3):
            down.write(down.dialect.keepalive)
            await asyncio.sleep(0)
        raise Unavailable("nobody works", retry_after=3.0, decision_id="d-9")

    door.gateway.behave = begin_and_fail
    client = await door.connect()
    reply = await client.request("POST", SURFACES[name].path, b"{}")
    assert (reply.status, reply.complete) == (200, name == "responses")
    assert reply.headers["content-type"] == STREAMS[name]
    assert reply.headers["x-accel-buffering"] == "no"
    assert reply.body.startswith(dialect_of(name).keepalive * 3)
    told = last_event(name, reply.body)
    assert "nobody works" in json.dumps(told)
    assert code_in(told) == "no_backend_available"
    assert await client.ended()


def code_in(event: Any) -> str:
    inner = event["error"]
    return str(inner["code"] if isinstance(inner, dict) else event["code"])


async def test_a_body_that_is_no_stream_is_cut_without_words(door: Door) -> None:
    async def begin_and_fail(inbound: Inbound, down: ClientDownstream) -> None:
        down.start(200, (("content-type", "audio/mpeg"),), None)
        down.write(b"RIFF")
        raise StreamBroken("cut")

    door.gateway.behave = begin_and_fail
    client = await door.connect()
    reply = await client.request("POST", "/v1/audio/speech", b"{}")
    assert (reply.complete, reply.body) == (False, b"RIFF")


async def hung(door: Door, path: str) -> tuple[WireClient, asyncio.Event]:
    async def wait(inbound: Inbound, down: ClientDownstream) -> None:
        await asyncio.Event().wait()

    door.gateway.behave = wait
    client = await door.connect()
    await client.send(request("POST", path, b"{}"))
    await asyncio.wait_for(door.gateway.arrived.wait(), 5)
    return client, door.gateway.cancelled


@pytest.mark.parametrize("name", STREAMS)
async def test_shutting_down_is_told_in_the_dialect(door: Door, name: str) -> None:
    client, cancelled = await hung(door, SURFACES[name].path)
    assert door.handler.cut() == 1
    reply = await client.reply()
    assert (reply.status, code(name, reply)) == (503, "shutting_down")
    assert cancelled.is_set()


@pytest.mark.parametrize("name", STREAMS)
async def test_a_full_gateway_says_so_in_the_dialect(open_door: Opener, name: str) -> None:
    door = await open_door(EdgeLimits(connections=1))
    assert (await (await door.connect()).request("GET", "/health/live")).status == 200
    reply = await (await door.connect()).request("POST", SURFACES[name].path, b"{}")
    assert (reply.status, code(name, reply)) == (503, "too_many_connections")


@pytest.mark.parametrize(
    ("path", "headers", "reader"),
    [
        ("/api/pull", {}, ollama_code),
        ("/v1/messages/batches", {}, anthropic_code),
        ("/v1/files", {"anthropic-version": "2023-06-01"}, anthropic_code),
        ("/v1/files", {}, openai_code),
        ("/v1/models/nope", {"anthropic-version": "2023-06-01"}, anthropic_code),
        ("/v1/models/nope", {}, openai_code),
    ],
)
async def test_what_is_not_there_is_told_in_the_dialect_of_the_caller(
    door: Door, path: str, headers: dict[str, str], reader: Callable[[Any], str]
) -> None:
    client = await door.connect()
    reply = await client.request("GET", path, **headers)
    assert reply.status == 404
    assert reader(reply.json) in ("not_found", "model_not_found")


async def test_chat_keeps_its_dialect_whatever_versions_a_client_names(door: Door) -> None:
    client = await door.connect()
    reply = await client.request("GET", "/v1/chat/completions", anthropic_version="2023-06-01")
    assert (reply.status, reply.error["code"]) == (405, "method_not_allowed")
