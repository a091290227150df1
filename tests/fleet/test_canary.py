from __future__ import annotations

import json

import pytest

from gateway.engines.adapter import Answer
from gateway.engines.registry import engine
from gateway.fleet.canary import question, verdict
from tests.core.fleet import offer


@pytest.mark.parametrize(
    ("name", "surfaces", "path", "member"),
    [
        ("vllm", frozenset({"chat", "completions"}), "/v1/chat/completions", "messages"),
        ("llama.cpp", None, "/v1/chat/completions", "messages"),
        ("vllm", frozenset({"embeddings"}), "/v1/embeddings", "input"),
        ("anthropic", frozenset({"messages"}), "/v1/messages", "messages"),
    ],
)
def test_an_engine_is_asked_in_what_it_speaks(
    name: str, surfaces: frozenset[str] | None, path: str, member: str
) -> None:
    asked = question(engine(name), offer("m", served_as="m.gguf", surfaces=surfaces))
    assert asked is not None
    body = json.loads(asked.body)
    assert (asked.method, asked.path) == ("POST", path)
    assert body["model"] == "m.gguf"
    assert body.get("max_tokens", 1) == 1
    assert member in body


def test_what_only_draws_or_ranks_is_not_asked() -> None:
    assert question(engine("vllm"), offer("m", surfaces=frozenset({"rerank"}))) is None


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (200, b'{"choices": [{"message": {"content": ""}}]}', True),
        (200, b'{"data": [{"embedding": [0.1]}]}', True),
        (200, b'{"choices": []}', False),
        (200, b'{"error": "x"}', False),
        (200, b"<html>", False),
        (500, b"{}", False),
        (502, b"", False),
        (503, b'{"error": {"message": "Loading model"}}', None),
        (400, b"{}", None),
        (404, b"{}", None),
    ],
)
def test_an_answer_is_one_with_something_in_it(status: int, body: bytes, found: bool | None) -> None:
    assert verdict(Answer(status, {}, body)) is found
