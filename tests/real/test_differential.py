"""Whatever valid chat request comes: through kvgate a llama.cpp answers as it answers directly.

`KVGATE_DIFFERENTIAL` is how many requests are generated, 100 without it. They depend on nothing but the loaded code.
"""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from gateway.local.launch import LlamaServer
from tests.real.chat_requests import chat_bodies
from tests.real.conftest import TOOLS_TEMPLATE
from tests.real.gateway_process import backend, serving

EXAMPLES = int(os.environ.get("KVGATE_DIFFERENTIAL", "100"))
CHANGING = {"id", "created", "timings"}
"""Members whose values differ from answer to answer; that they are there must agree."""


class Peer:
    """One server. A connection a request: the engine closes idle ones while the gateway is being compared."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc

    def ask(self, body: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body."""
        connection = http.client.HTTPConnection(self._host, timeout=60)
        try:
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, reply.headers.get_content_type(), reply.read()
        finally:
            connection.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def peers(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Peer, Peer]]:
    """The engine itself, and the gateway before it. One slot, so the cache holds the last prompt for both."""
    template = ("--chat-template-file", str(TOOLS_TEMPLATE))
    engine = LlamaServer(tiny_model, "tiny", context=4096, slots=1, flags=template)
    async with engine, serving(tmp_path_factory.mktemp("differential"), [backend("engine", engine.url)]) as gateway:
        yield Peer(engine.url), Peer(gateway.url)


def _plain(value: Any, key: str = "") -> Any:
    if key in CHANGING:
        return f"a {type(value).__name__}"
    if isinstance(value, dict):
        return {name: _plain(member, name) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    return value


def _in_order(pairs: list[tuple[str, Any]]) -> Any:
    return [(name, _plain(value, name)) for name, value in pairs]


def _events(body: bytes) -> list[Any]:
    """The events of a stream, their members in order; nothing but whole events and the end may be in it."""
    *blocks, rest = body.split(b"\n\n")
    assert rest == b"", body[-200:]
    assert all(block.startswith(b"data: ") for block in blocks), body[:500]
    assert blocks[-1] == b"data: [DONE]", body[-200:]
    return [json.loads(block[6:], object_pairs_hook=_in_order) for block in blocks[:-1]]


def _text(body: bytes) -> str:
    chunks = [json.loads(block[6:]) for block in body.split(b"\n\n")[:-2]]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


@given(data=st.data())
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@pytest.mark.timeout(600)
def test_the_gateway_answers_what_the_engine_answers(peers: tuple[Peer, Peer], data: st.DataObject) -> None:
    direct, through = peers
    whole, streamed = data.draw(chat_bodies("tiny"))
    status, _, answer = direct.ask(whole)  # the prompt is in the cache from here on
    assert status == 200, answer

    whole_direct, whole_through = direct.ask(whole), through.ask(whole)
    stream_direct, stream_through = direct.ask(streamed), through.ask(streamed)
    assert whole_through[:2] == whole_direct[:2], whole_through
    assert stream_through[:2] == stream_direct[:2] == (200, "text/event-stream"), stream_through
    assert _events(stream_through[2]) == _events(stream_direct[2])

    got, expected = json.loads(whole_through[2]), json.loads(whole_direct[2])
    (choice,) = expected["choices"]
    said, asked = choice["message"]["content"], json.loads(whole)
    if got["choices"][0]["message"]["content"] != said and ("tools" in asked or "response_format" in asked):
        # Where it looks for tool calls or JSON in the text, the engine's stream holds back what might begin one (a line
        # end, a fence) and drops it at the end, while its whole answer has it. The gateway asks for streams.
        choice["message"]["content"] = _text(stream_direct[2])
        assert said.startswith(choice["message"]["content"])
        event("the engine's stream and its whole answer differ")
    assert _plain(got) == _plain(expected)
