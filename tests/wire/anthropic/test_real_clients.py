"""Bodies shaped as a coding agent and the SDKs send them (texts are made up), on an engine that only speaks chat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.wire.anthropic.request_to_chat import to_chat
from gateway.wire.chat_request import parse_chat
from tests.recordings import FOLDER
from tests.wire.anthropic.checked import chat_request

CLIENTS = FOLDER / "anthropic" / "clients"


def body(name: str) -> bytes:
    return (CLIENTS / f"{name}.json").read_bytes()


def chat(name: str) -> dict[str, Any]:
    made = to_chat(body(name))
    assert made.lost == ()
    return chat_request(made.body)


@pytest.mark.parametrize("name", sorted(path.stem for path in CLIENTS.glob("*.json")))
def test_each_is_a_chat_request(name: str) -> None:
    made = chat(name)
    asked = json.loads(body(name))
    read = parse_chat(to_chat(body(name)).body)
    assert (read.model, read.stream) == ("house-large", asked.get("stream", False))
    assert read.max_tokens == asked.get("max_tokens")
    assert read.tools == len(asked.get("tools", []))
    assert read.include_usage is (True if read.stream else None)
    assert {"metadata", "thinking", "context_management", "output_config", "system"}.isdisjoint(made)


def test_k1_the_agents_turns_begin_with_one_another() -> None:
    made = [to_chat(body(f"agent_turn_{number}")).body for number in (1, 2, 3)]
    heads = [one[one.index(b'"tools":') : -2] for one in made]
    assert heads[1].startswith(heads[0])
    assert heads[2].startswith(heads[1])
    roles = [message["role"] for message in json.loads(made[2])["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "user", "assistant", "user"]


def test_the_agents_schemas_keep_their_bytes() -> None:
    sent = body("agent_turn_1")
    at = sent.index(b'"input_schema":') + len(b'"input_schema":')
    schema = sent[at : sent.index(b"},{", at)]
    assert b'"parameters":' + schema in to_chat(sent).body


def test_the_agents_title_is_asked_for_as_json() -> None:
    made = chat("agent_title")
    assert "tools" not in made
    assert made["response_format"]["json_schema"]["schema"]["required"] == ["title"]


def test_the_head_of_the_system_prompt_is_as_the_client_wrote_it() -> None:
    first = chat("agent_turn_1")["messages"][0]["content"]
    assert first.startswith("x-billing-header: version=1.2.3.4ab; entrypoint=cli;\n\nYou are a coding agent.")
