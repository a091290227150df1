from __future__ import annotations

import logging

import pytest

from gateway.edge.auth import LOCAL, Key, Keyring, presented
from gateway.edge.downstream import ClientDownstream
from gateway.edge.origin import host_of, is_loopback
from gateway.errors import Forbidden, Unauthorized
from gateway.wire.inbound import Client, Inbound
from tests.edge.conftest import SECRET, Opener

WRONG = "sk-test-SECRET123"
CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    "header",
    [
        {"authorization": f"Bearer {SECRET}"},
        {"authorization": f"bearer  {SECRET}"},
        {"x_api_key": SECRET},
        {"api_key": SECRET},
        {"authorization": "Bearer unused", "x_api_key": SECRET},
    ],
)
async def test_a_known_key_says_who_it_is(open_door: Opener, header: dict[str, str]) -> None:
    door = await open_door(keys=True)
    client = await door.connect()
    reply = await client.request("POST", CHAT, b"{}", x_request_id="caller-1", cookie=WRONG, **header)
    assert reply.json["client"] == "agents"
    inbound = door.gateway.seen[0]
    assert inbound.client.models == frozenset(("small",))
    assert inbound.request_id == "caller-1"
    assert not {"authorization", "x-api-key", "api-key", "cookie"} & set(inbound.headers)
    assert SECRET not in repr(inbound)
    assert (await client.request("GET", "/v1/models", **header)).status == 200
    assert door.access()[0]["client"] == "agents"


async def test_a2_a_wrong_key_is_nowhere_to_be_seen(open_door: Opener) -> None:
    door = await open_door(keys=True)
    client = await door.connect()
    replies = [
        await client.request("POST", f"{CHAT}?key={WRONG}", b"{}", authorization=f"Bearer {WRONG}"),
        await client.request("GET", f"/v1/models/{WRONG}?key={WRONG}", x_api_key=WRONG),
        await client.request("GET", f"/{WRONG}", x_api_key=WRONG),
        await client.request("GET", "/v1/models", authorization=f"Basic {WRONG}"),
        await client.request("GET", "/v1/models"),
        await client.request("GET", f"/v1/models?key={SECRET}&api_key={SECRET}&token={SECRET}"),
    ]
    assert [reply.status for reply in replies] == [401, 401, 404, 401, 401, 401]
    assert {reply.error["code"] for reply in replies if reply.status == 401} == {"invalid_api_key"}
    assert {reply.error["type"] for reply in replies if reply.status == 401} == {"authentication_error"}
    logging.getLogger("anything").debug("sent with %s", WRONG)
    assert len(door.access()) == 6
    everything = door.lines.data + b"".join(reply.raw + reply.body for reply in replies)
    assert b"SECRET123" not in everything
    assert SECRET.encode() not in everything
    assert SECRET not in repr(door.public.keyring.__slots__) + str(vars(door.public))
    assert door.gateway.seen == []


async def test_a_caller_cant_put_words_into_the_log_by_its_id(open_door: Opener) -> None:
    door = await open_door()
    client = await door.connect()
    await client.request("POST", CHAT, b"{}", x_request_id="two words")
    await client.request("POST", CHAT, b"{}", x_request_id="x" * 200)
    assert [inbound.request_id for inbound in door.gateway.seen] == [None, None]


def test_without_keys_only_this_machine_is_served() -> None:
    ring = Keyring()
    for peer in ("127.0.0.1", "::1", "127.9.9.9", "::ffff:127.0.0.1"):
        assert ring.identify((), peer) is LOCAL
    for peer in ("10.0.0.5", "::ffff:10.0.0.5", "", "localhost.evil.example"):
        with pytest.raises(Forbidden):
            ring.identify((), peer)


def test_keys_are_told_apart_and_an_empty_one_never_matches() -> None:
    ring = Keyring([Key("k-one", Client("one")), Key("k-two", Client("two")), Key("", Client("nobody"))])
    assert ring.identify(presented({"Authorization": "Bearer k-two"}), "10.0.0.1").name == "two"
    for name in ("x-api-key", "api-key"):
        assert ring.identify(presented({name: "k-one"}), "10.0.0.1").name == "one"
    both = {"Authorization": "Bearer a-placeholder", "x-api-key": " k-one "}
    assert ring.identify(presented(both), "10.0.0.1").name == "one"
    for authorization in (
        "",
        "Bearer  ",
        "Bearer",
        "Bearer ",
        "k-one",
        "Bearer k-on",
        "Bearer k-one2",
        "Bearer \udcff",
    ):
        with pytest.raises(Unauthorized):
            ring.identify(presented({"Authorization": authorization}), "127.0.0.1")


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1.evil.example", "null"])
async def test_a_page_cant_use_an_open_gateway_through_its_visitor(open_door: Opener, origin: str) -> None:
    door = await open_door()
    client = await door.connect()
    reply = await client.request("POST", CHAT, b"{}", origin=origin, content_type="text/plain")
    assert (reply.status, reply.error["code"]) == (403, "origin_not_allowed")
    assert "reason" not in reply.error
    assert "access-control-allow-origin" not in reply.headers
    rebound = await client.request("POST", CHAT, b"{}", origin="http://evil.example", host="evil.example")
    assert rebound.status == 403
    own = f"127.0.0.1:{door.port}"
    assert (await client.request("POST", CHAT, b"{}", origin=f"http://{own}", host=own)).status == 200


async def test_browsers_are_off_by_default(open_door: Opener) -> None:
    door = await open_door(keys=True)
    client = await door.connect()
    reply = await client.request("OPTIONS", CHAT, origin="https://chat.example")
    assert reply.status == 405
    reply = await client.request("POST", CHAT, b"{}", origin="https://chat.example", authorization=f"Bearer {SECRET}")
    assert reply.status == 200
    assert not [name for name in reply.headers if name.startswith("access-control")]


async def test_a3_preflight_comes_before_the_key_and_errors_are_readable(open_door: Opener) -> None:
    door = await open_door(keys=True, origins=("https://chat.example",))
    client = await door.connect()
    reply = await client.request(
        "OPTIONS", CHAT, origin="https://chat.example", access_control_request_headers="authorization, x-stainless-os"
    )
    assert reply.status == 204
    assert reply.headers["access-control-allow-origin"] == "https://chat.example"
    assert reply.headers["access-control-allow-headers"] == "authorization, x-stainless-os"
    assert "POST" in reply.headers["access-control-allow-methods"]
    reply = await client.request("POST", CHAT, b"{}", origin="https://chat.example")
    assert reply.status == 401
    assert reply.headers["access-control-allow-origin"] == "https://chat.example"

    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        down.extra = (("x-kvgate-backend", "rig"),)
        await door.gateway.echo(inbound, down)

    door.gateway.behave = serve
    allowed = {"origin": "https://chat.example", "authorization": f"Bearer {SECRET}"}
    reply = await client.request("POST", CHAT, b"{}", **allowed)
    assert reply.headers["access-control-allow-origin"] == "https://chat.example"
    assert reply.headers["x-kvgate-backend"] == "rig"
    reply = await client.request("OPTIONS", CHAT, origin="https://other.example")
    assert reply.status == 405
    assert "access-control-allow-origin" not in reply.headers


def test_loopback_is_told_from_what_looks_like_it() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "[::1]", "::1", "app.localhost", "127.1.2.3")))
    assert not any(map(is_loopback, ("localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1", "", "0.0.0.0")))
    assert host_of("[::1]:8080") == "::1"
    assert host_of("Example.com:80") == "example.com"
    assert host_of("[bad") == ""
