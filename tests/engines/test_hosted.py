"""Hosted services, and servers of which nothing is known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.engines.anthropic import Anthropic
from gateway.engines.openai_compatible import OpenAiCompatible
from gateway.wire.splice import splice
from tests.engines.cases import answer
from tests.engines.probed import body, chat

OPENAI = OpenAiCompatible()


def sent(model: str, budget: int | None, **more: Any) -> dict[str, Any]:
    edits = OPENAI.edits(chat(**more), served_as=model, stream=False, max_tokens=budget)
    result: dict[str, Any] = json.loads(splice(body(**more), edits))
    return {name: value for name, value in result.items() if name.startswith("max")}


@pytest.mark.parametrize(
    ("model", "more", "budget", "expected"),
    [
        ("o4-mini", {}, 99, {"max_completion_tokens": 99}),
        ("gpt-5.1", {}, 99, {"max_completion_tokens": 99}),
        ("openai/gpt-5", {}, 99, {"max_completion_tokens": 99}),
        ("gpt-4o", {}, 99, {"max_tokens": 99}),
        ("gpt-oss-120b", {}, 99, {"max_tokens": 99}),
        ("olmo-2", {}, 99, {"max_tokens": 99}),
        ("o4-mini", {"max_tokens": 500}, 99, {"max_tokens": 99}),
        ("gpt-4o", {"max_completion_tokens": 500}, 99, {"max_completion_tokens": 99}),
        ("o4-mini", {"max_completion_tokens": 500}, None, {"max_completion_tokens": 500}),
    ],
)
def test_a_budget_has_the_name_that_the_client_or_the_model_gives_it(
    model: str, more: dict[str, Any], budget: int | None, expected: dict[str, int]
) -> None:
    assert sent(model, budget, **more) == expected


def test_a_list_of_paths_spares_the_probes() -> None:
    paths = {"paths": dict.fromkeys(("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/tokenize"))}
    found = {"/openapi.json": answer(paths)}
    assert OPENAI.follow_up(found) == ()
    assert OPENAI.facts(found).surfaces == {"chat", "completions", "embeddings"}


def test_a_list_of_paths_without_chat_is_that_of_something_else() -> None:
    found = {"/openapi.json": answer({"paths": {"/v1/models": {}}})}
    assert OPENAI.follow_up(found)
    assert OPENAI.facts(found).surfaces is None


def test_anthropics_models_and_version() -> None:
    adapter = Anthropic()
    (probe,) = adapter.discovery
    assert (probe.key, probe.path) == ("/v1/models", "/v1/models?limit=1000")
    assert dict(probe.headers) == adapter.surface_headers("messages") == {"anthropic-version": "2023-06-01"}
    listed = {
        "data": [
            {
                "id": "a",
                "capabilities": {
                    "image_input": {"supported": True},
                    "structured_outputs": {"supported": True},
                    "thinking": {"supported": False},
                    "odd": 3,
                },
            },
            {"id": "b"},
            {"id": 3},
        ]
    }
    one, other = adapter.facts({"/v1/models": answer(listed)}).models
    assert one.abilities == {"tools", "vision", "json_schema"}
    assert other.abilities is None
    assert adapter.traits.surfaces == {"messages", "count_tokens"}
