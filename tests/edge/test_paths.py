from __future__ import annotations

import pytest

from gateway.edge.routes import match, path_of
from gateway.errors import NotFound
from tests.edge.conftest import Door, Opener

CHAT = b'{"model":"small","messages":[]}'


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/chat/completions",
        "/v1/v1/chat/completions",
        "//v1//chat/completions",
        "/v1/chat/completions/",
        "/v1/chat/completions?api-version=1",
        "http://elsewhere/v1/chat/completions",
    ],
)
async def test_every_spelling_reaches_chat_without_a_redirect(door: Door, path: str) -> None:
    client = await door.connect()
    reply = await client.request("POST", path, CHAT)
    assert reply.status == 200
    assert reply.json == {"surface": "chat", "client": "local", "bytes": len(CHAT)}
    assert reply.headers["x-kvgate-decision"] == "d1"


async def test_completions_is_a_surface_of_its_own(door: Door) -> None:
    client = await door.connect()
    assert (await client.request("POST", "/v1/completions", b"{}")).json["surface"] == "completions"


async def test_ids_with_a_slash_raw_and_encoded(door: Door) -> None:
    client = await door.connect()
    raw = await client.request("GET", "/v1/models/org/name")
    encoded = await client.request("GET", "/v1/models/org%2Fname")
    assert raw.status == encoded.status == 200
    assert raw.body == encoded.body
    assert raw.json["id"] == "org/name"


async def test_unknown_model_is_a_404_that_should_not_be_retried(door: Door) -> None:
    client = await door.connect()
    reply = await client.request("GET", "/v1/models/nope")
    assert reply.status == 404
    assert reply.error["code"] == "model_not_found"
    assert reply.headers["x-should-retry"] == "false"


async def test_unknown_path_is_json_and_names_what_is_served(door: Door) -> None:
    client = await door.connect()
    reply = await client.request("POST", "/v1/responses", b"{}")
    assert reply.status == 404
    assert reply.error["code"] == "not_found"
    assert "POST /v1/chat/completions" in reply.error["message"]
    assert (await client.request("GET", "/v1/models")).status == 200


async def test_wrong_method_says_which_is_right(door: Door) -> None:
    client = await door.connect()
    reply = await client.request("GET", "/v1/chat/completions")
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert reply.error["code"] == "method_not_allowed"
    reply = await client.request("DELETE", "/v1/models")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


async def test_head_has_the_length_and_no_body(door: Door) -> None:
    client = await door.connect()
    whole = await client.request("GET", "/v1/models")
    reply = await client.request("HEAD", "/v1/models", head_only=True)
    assert reply.status == 200
    assert reply.headers["content-length"] == str(len(whole.body))
    assert (await client.request("GET", "/v1/models")).body == whole.body


async def test_health_needs_no_key_and_readiness_is_the_gateways_own(open_door: Opener) -> None:
    door = await open_door(keys=True)
    client = await door.connect()
    assert (await client.request("GET", "/health/live")).json == {"status": "live"}
    assert (await client.request("GET", "/health/ready")).status == 200
    door.gateway.is_ready = False
    assert (await client.request("GET", "/health/ready")).status == 503
    assert (await client.request("GET", "/health/live")).status == 200


def test_targets_are_cut_to_their_path() -> None:
    assert path_of("/a?key=x#y") == "/a"
    assert path_of("https://h:1/a/b") == "/a/b"
    assert path_of("*") == "*"
    with pytest.raises(NotFound):
        match("/v1/models2")
    with pytest.raises(NotFound):
        match("/")
    assert match("/models/a%20b")[1] == "a b"
