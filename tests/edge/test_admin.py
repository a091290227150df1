from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from gateway.cli import explain
from gateway.edge.admin import AdminPort
from gateway.edge.handler import Handler
from gateway.edge.openapi import openapi
from gateway.edge.server import EdgeServer
from gateway.errors import ConfigError
from gateway.telemetry.metrics import Metrics
from tests.edge.wire_client import WireClient
from tests.telemetry.test_explanation import parse


class FakeAdmin:
    def __init__(self) -> None:
        self.is_ready = True
        self.reloads = 0
        self.broken = False
        self.waiting: dict[str, dict[str, Any]] = {
            "<code>": {"requests": 3, "tokens": 12_000, "seconds_to_drain": 4.25, "oldest_seconds": 61.0}
        }
        self.rows: list[dict[str, Any]] = [
            {
                "name": "<rig>",
                "state": "up",
                "running": 1200,
                "slots": 4000,
                "models": [{"id": "a/<b>", "served_as": "c", "window": 32768}],
                "kv_pool_tokens": 1000,
                "kv_reserved_tokens": 250,
                "kv_foreign_tokens": 2000,
                "error": "can't <connect>",
                "notes": ["one & two"],
            }
        ]

    def ready(self) -> bool:
        return self.is_ready

    async def reload(self) -> dict[str, Any]:
        if self.broken:
            raise ConfigError("gateway.yaml:3: found a tab where only spaces may indent")
        self.reloads += 1
        return {"applied": True, "version": self.reloads}

    def backends(self) -> list[dict[str, Any]]:
        return self.rows

    def queue(self) -> dict[str, Any]:
        return {"waiting": sum(each["requests"] for each in self.waiting.values()), "models": self.waiting}

    def keys(self) -> list[dict[str, Any]]:
        return [{"name": "agents", "running": 2, "running_limit": 16, "limits": []}]

    def decision(self, request_id: str) -> dict[str, Any] | None:
        return {"id": request_id, "decisions": []} if request_id == "r/1" else None


@pytest.fixture
def admin() -> FakeAdmin:
    return FakeAdmin()


@pytest.fixture
async def client(admin: FakeAdmin) -> AsyncIterator[WireClient]:
    metrics = Metrics()
    metrics.know(("code",), ("rig",))
    metrics.failed("rig", "connect")
    runner = web.ServerRunner(EdgeServer(Handler(AdminPort(admin, metrics))), shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    wire = await WireClient.connect(runner.addresses[0][1])
    yield wire
    wire.close()
    await runner.cleanup()


async def test_pages(client: WireClient, admin: FakeAdmin) -> None:
    assert (await client.request("GET", "/health/live")).json == {"status": "live"}
    assert (await client.request("GET", "/health/ready")).status == 200
    admin.is_ready = False
    assert (await client.request("GET", "/health/ready")).status == 503
    assert (await client.request("GET", "/admin/queue/")).json["models"]["<code>"]["requests"] == 3
    assert (await client.request("GET", "/admin/keys")).json["keys"][0]["name"] == "agents"
    assert (await client.request("GET", "/openapi.json")).json == openapi()
    assert (await client.request("GET", "/admin/backends")).json["backends"][0]["name"] == "<rig>"
    metrics = await client.request("GET", "/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b'kvgate_backend_failures_total{backend="rig",kind="connect"} 1.0' in metrics.body
    assert (await client.request("GET", "/admin/decisions/r%2F1")).json["id"] == "r/1"
    assert (await client.request("GET", "/admin/decisions/r2")).error["code"] == "not_found"
    assert "/metrics" in (await client.request("GET", "/nothing")).error["message"]
    assert (await client.request("HEAD", "/metrics", head_only=True)).status == 200


async def test_the_front_page_is_plain_and_escaped(client: WireClient) -> None:
    reply = await client.request("GET", "/")
    html = reply.body.decode()
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "&lt;rig&gt;" in html
    assert "<rig>" not in html
    assert "<script" not in html
    assert '<a href="/metrics">' in html
    assert "/admin/reload" not in html
    assert "1,200 of 4,000" in html
    assert "a/&lt;b&gt; as c <small>window 32,768 tokens</small>" in html
    assert "can&#x27;t &lt;connect&gt;" in html
    assert "one &amp; two" in html
    assert "&lt;code&gt;</td>" in html


async def test_the_front_page_shows_the_pool_as_a_bar_that_never_overflows(client: WireClient) -> None:
    html = (await client.request("GET", "/")).body.decode()
    assert '<i style="width:25.0%"></i><i style="width:75.0%"></i>' in html
    assert "250 of 1,000 tokens, 2,000 by others" in html


async def test_the_front_page_knows_no_more_than_a_name(client: WireClient, admin: FakeAdmin) -> None:
    admin.rows = [{"name": "new", "state": "unknown"}]
    admin.waiting = {}
    html = (await client.request("GET", "/")).body.decode()
    assert "pool not known" in html
    assert "Nothing waits." in html
    admin.rows = []
    assert "No backends are configured." in (await client.request("GET", "/")).body.decode()


async def test_reload_applies_or_says_why_not(client: WireClient, admin: FakeAdmin) -> None:
    assert (await client.request("GET", "/admin/reload")).status == 405
    assert (await client.request("POST", "/admin/reload")).json == {"applied": True, "version": 1}
    admin.broken = True
    reply = await client.request("POST", "/admin/reload")
    assert reply.status == 422
    assert reply.error["code"] == "config_invalid"
    assert "gateway.yaml:3" in reply.error["message"]
    assert admin.reloads == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://evil.example", "host": "evil.example"},
        {"host": "evil.example"},
        {"host": "evil.example", "x_kvgate_admin": "1"},
        {"sec_fetch_site": "cross-site"},
    ],
    ids=["origin", "null", "rebound", "host", "rebound-header", "no-origin"],
)
async def test_other_sites_pages_get_nothing(client: WireClient, admin: FakeAdmin, headers: dict[str, str]) -> None:
    for method, path in (("POST", "/admin/reload"), ("GET", "/admin/backends"), ("GET", "/")):
        reply = await client.request(method, path, **headers)
        assert (reply.status, reply.error["code"]) == (403, "origin_not_allowed")
        assert "reason" not in reply.error
    assert admin.reloads == 0
    preflight = await client.request(
        "OPTIONS", "/admin/reload", access_control_request_headers="x-kvgate-admin", **headers
    )
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    assert (await client.request("GET", "/health/live", **headers)).status == 200


async def test_own_pages_and_programs_get_through(client: WireClient, admin: FakeAdmin) -> None:
    host = "localhost:9090"
    assert (await client.request("POST", "/admin/reload", host=host, origin=f"http://{host}")).status == 200
    assert (
        await client.request("POST", "/admin/reload", origin="https://ops.example", x_kvgate_admin="1")
    ).status == 200
    assert admin.reloads == 2


async def test_explain_asks_the_admin_port(client: WireClient, capsys: pytest.CaptureFixture[str]) -> None:
    port = client.writer.get_extra_info("peername")[1]
    url = f"http://127.0.0.1:{port}/"
    assert await asyncio.to_thread(explain.run, parse("r/1", "--admin", url, "--json")) == 0
    assert json.loads(capsys.readouterr().out) == {"id": "r/1", "decisions": []}
    assert await asyncio.to_thread(explain.run, parse("r2", "--admin", url)) == 1
