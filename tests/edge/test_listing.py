"""The model list in each family's dialect, with the limits that the gateway enforces."""

from __future__ import annotations

import json

import pytest

from tests.edge.conftest import Door, Opener

ANTHROPIC = {"anthropic_version": "2023-06-01"}


async def test_c6_the_list_tells_window_and_output_limit(door: Door) -> None:
    client = await door.connect()
    listed = (await client.request("GET", "/v1/models")).json
    assert listed["object"] == "list"
    entry = listed["data"][0]
    assert (entry["max_model_len"], entry["context_window"], entry["max_output_tokens"]) == (8192, 8192, 1024)
    assert (await client.request("GET", "/v1/models/small")).json == entry


async def test_c6_n2_the_list_in_anthropics_dialect(door: Door) -> None:
    client = await door.connect()
    listed = (await client.request("GET", "/v1/models?limit=20", **ANTHROPIC)).json
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("small", "org/name", False)
    entry = listed["data"][0]
    assert (entry["type"], entry["id"], entry["created_at"]) == ("model", "small", "2027-01-15T08:00:00Z")
    assert (entry["max_input_tokens"], entry["max_tokens"]) == (8192, 1024)
    assert entry["display_name"]
    for path in ("/v1/models/org/name", "/anthropic/v1/models/org%2Fname"):
        assert (await client.request("GET", path, **ANTHROPIC)).json == listed["data"][1]
    door.gateway.ids = []
    assert (await client.request("GET", "/v1/models", **ANTHROPIC)).json["data"] == []


async def test_c6_the_list_in_ollamas_dialect(door: Door) -> None:
    client = await door.connect()
    tags = (await client.request("GET", "/api/tags")).json["models"]
    assert [(tag["name"], tag["model"]) for tag in tags] == [("small", "small"), ("org/name", "org/name")]
    assert [tag["name"] for tag in (await client.request("GET", "/api/ps")).json["models"]] == ["small"]
    assert (await client.request("GET", "/api/version")).json["version"].count(".") == 2


@pytest.mark.parametrize("named", [{"model": "small"}, {"name": "small"}, {"model": "small", "verbose": True}])
async def test_c6_show_tells_window_and_abilities(door: Door, named: dict[str, object]) -> None:
    client = await door.connect()
    shown = (await client.request("POST", "/api/show", json.dumps(named).encode())).json
    info = shown["model_info"]
    assert info[f"{info['general.architecture']}.context_length"] == 8192
    assert {"completion", "tools"} <= set(shown["capabilities"])
    assert "vision" not in shown["capabilities"]
    assert shown["details"].keys() >= {"family", "format", "parameter_size"}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"model":"nope"}', 404, "model_not_found"),
        (b"{}", 400, "invalid_request"),
        (b'{"model":7}', 400, "invalid_request"),
        (b"[]", 400, "invalid_request"),
        (b"{", 400, "invalid_request"),
        (b"[" * 5000, 400, "invalid_request"),
        (b"\xff", 400, "invalid_request"),
        (b'{"model":"a","model":"b"}', 400, "duplicate_member"),
        (b'{"model":"a","options":{"x":1,"x":2}}', 400, "duplicate_member"),
    ],
)
async def test_n3_show_of_nothing_is_refused_in_ollamas_dialect(
    door: Door, body: bytes, status: int, code: str
) -> None:
    client = await door.connect()
    reply = await client.request("POST", "/api/show", body)
    assert (reply.status, reply.json["code"]) == (status, code)
    assert isinstance(reply.json["error"], str)


async def test_the_root_says_who_is_there(open_door: Opener) -> None:
    door = await open_door(keys=True)
    client = await door.connect()
    assert (await client.request("GET", "/")).json == {"name": "kvgate", "status": "running"}
    assert (await client.request("HEAD", "/", head_only=True)).status == 200
    assert (await client.request("POST", "/", b"{}")).status == 405
