from __future__ import annotations

import pytest

from gateway.edge.routes import ROUTES, find, path_of
from gateway.errors import NotFound
from gateway.wire.surfaces import SURFACES
from tests.edge.conftest import Door, Opener

CHAT = b'{"model":"small","messages":[]}'
SPELLINGS = ["/v1/{}", "/{}", "/v1/v1/{}", "//v1//{}", "/v1/{}/", "/openai/v1/{}", "/v1/{}?api-version=1"]


@pytest.mark.parametrize(
    "path", [*(spelling.format("chat/completions") for spelling in SPELLINGS), "http://elsewhere/v1/chat/completions"]
)
async def test_p7_every_spelling_reaches_chat_without_a_redirect(door: Door, path: str) -> None:
    client = await door.connect()
    reply = await client.request("POST", path, CHAT)
    assert reply.status == 200
    assert reply.json == {"surface": "chat", "client": "local", "bytes": len(CHAT)}
    assert reply.headers["x-kvgate-decision"] == "d1"


@pytest.mark.parametrize("name", SURFACES)
async def test_p7_every_surface_is_reached_in_every_spelling(door: Door, name: str) -> None:
    client = await door.connect()
    rest = SURFACES[name].path.removeprefix("/v1").strip("/")
    for spelling in SPELLINGS:
        reply = await client.request("POST", spelling.format(rest), b"{}")
        assert (reply.status, reply.json["surface"]) == (200, name), spelling


@pytest.mark.parametrize(
    ("path", "surface"),
    [
        ("/v2/rerank", "rerank"),
        ("/rerank", "rerank"),
        ("/v1/reranking", "rerank"),
        ("/score", "score"),
        ("/v1/tokenize", "tokenize"),
        ("/detokenize", "detokenize"),
        ("/v1/messages?beta=true", "messages"),
        ("/anthropic/v1/messages", "messages"),
        ("/anthropic/messages/count_tokens", "count_tokens"),
        ("/api/v1/chat/completions", "chat"),
        ("/ollama/v1/chat/completions", "chat"),
        ("/ollama/api/chat", "ollama_chat"),
        ("/v1/api/generate", "ollama_generate"),
        ("/api/embeddings", "ollama_embed"),
        ("/api/v1/embeddings", "embeddings"),
    ],
)
async def test_p7_names_of_the_same_thing_elsewhere(door: Door, path: str, surface: str) -> None:
    client = await door.connect()
    assert (await client.request("POST", path, b"{}")).json["surface"] == surface


async def test_n2_ids_with_a_slash_raw_and_encoded(door: Door) -> None:
    client = await door.connect()
    raw = await client.request("GET", "/v1/models/org/name")
    encoded = await client.request("GET", "/v1/models/org%2Fname")
    assert raw.status == encoded.status == 200
    assert raw.body == encoded.body
    assert raw.json["id"] == "org/name"
    for entry in (await client.request("GET", "/v1/models")).json["data"]:
        assert (await client.request("GET", f"/v1/models/{entry['id']}")).json == entry


async def test_n3_unknown_model_is_a_404_that_should_not_be_retried(door: Door) -> None:
    client = await door.connect()
    reply = await client.request("GET", "/v1/models/nope")
    assert reply.status == 404
    assert reply.error["code"] == "model_not_found"
    assert reply.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("path", ["/nonsense", "/v1/fine_tuning/jobs", "/v1beta/models/x:generateContent"])
async def test_p7_e1_what_is_not_served_is_a_json_404_that_names_what_is(door: Door, path: str) -> None:
    client = await door.connect()
    reply = await client.request("POST", path, b"{}")
    assert reply.status == 404
    assert reply.error["code"] == "not_found"
    for known in ("POST /v1/chat/completions", "POST /v1/messages", "POST /api/chat", "GET /v1/models"):
        assert known in reply.error["message"]
    assert (await client.request("GET", "/v1/models")).status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/responses/resp_1"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("GET", "/v1/responses/resp_1/input_items?limit=5"),
    ],
)
async def test_stored_responses_are_asked_of_who_keeps_them(door: Door, method: str, path: str) -> None:
    client = await door.connect()
    reply = await client.request(method, path)
    action = path.partition("resp_1")[2].partition("?")[0]
    assert (reply.status, reply.json) == (200, [method, "resp_1", action])
    assert door.access()[-1]["route"] != "other"
    assert "resp_1" not in str(door.access()[-1])


@pytest.mark.parametrize("path", ["/v1/responses/compact", "/v1/responses/input_tokens"])
async def test_what_asks_for_no_answer_that_was_made_is_not_offered(door: Door, path: str) -> None:
    client = await door.connect()
    reply = await client.request("POST", path)
    assert (reply.status, reply.error["code"]) == (404, "surface_not_offered")
    assert path in reply.error["message"]


async def test_e1_the_wrong_method_is_json_and_says_which_is_right(door: Door) -> None:
    client = await door.connect()
    reply = await client.request("GET", "/v1/chat/completions")
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert reply.error["code"] == "method_not_allowed"
    reply = await client.request("DELETE", "/v1/models")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


async def test_head_has_the_length_and_no_body(door: Door) -> None:
    client = await door.connect()
    for path in ("/v1/models", "/", "/api/tags"):
        whole = await client.request("GET", path)
        reply = await client.request("HEAD", path, head_only=True)
        assert reply.status == 200
        assert reply.headers["content-length"] == str(len(whole.body))
        assert (await client.request("GET", path)).body == whole.body


async def test_health_and_the_root_need_no_key_and_readiness_is_the_gateways_own(open_door: Opener) -> None:
    door = await open_door(keys=True)
    client = await door.connect()
    assert (await client.request("GET", "/health/live")).json == {"status": "live"}
    assert (await client.request("GET", "/health/ready")).status == 200
    assert (await client.request("HEAD", "/", head_only=True)).status == 200
    door.gateway.is_ready = False
    assert (await client.request("GET", "/health/ready")).status == 503
    assert (await client.request("GET", "/health/live")).status == 200


async def test_everything_else_needs_a_key(open_door: Opener) -> None:
    door = await open_door(keys=True)
    client = await door.connect()
    for route in ROUTES:
        if route.name not in ("live", "ready", "root"):
            method = route.methods[0]
            reply = await client.request(
                method, route.template.replace("{id}", "x"), b"{}" if method == "POST" else b""
            )
            assert reply.status == 401, route.template
    assert door.gateway.seen == []


def test_targets_are_cut_to_their_path() -> None:
    assert path_of("/a?key=x#y") == "/a"
    assert path_of("https://h:1/a/b") == "/a/b"
    assert path_of("*") == "*"
    with pytest.raises(NotFound):
        assert find("/v1/models2", {}).known
    assert find("/models/a%20b", {}).id == "a b"


def test_every_template_finds_its_own_route() -> None:
    assert {route.surface for route in ROUTES if route.surface} == set(SURFACES)
    for route in ROUTES:
        assert find(route.template.replace("{id}", "an-id"), {}).route is route
    assert len({route.template for route in ROUTES}) == len(ROUTES)
