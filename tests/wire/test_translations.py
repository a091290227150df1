from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.wire.reading import read_request
from gateway.wire.surfaces import SURFACES, Kind
from gateway.wire.translations import SPOKEN, acceptable, spoken_for, translation

TURNS = [{"role": "user", "content": "x"}]
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": TURNS},
    "completions": {"prompt": "x"},
    "responses": {"input": "x"},
    "messages": {"messages": TURNS, "max_tokens": 5},
    "ollama_chat": {"messages": TURNS},
    "ollama_generate": {"prompt": "x"},
    "ollama_embed": {"input": "x"},
    "embeddings": {"input": "x"},
}


def body(surface: str, **more: Any) -> bytes:
    return json.dumps({"model": "m", **BODIES[surface], **more}).encode()


@pytest.mark.parametrize("surface", BODIES)
def test_what_is_offered_is_spoken_as_it_is(surface: str) -> None:
    chat = read_request(surface, body(surface))
    assert chat.surface == surface
    assert spoken_for(chat, frozenset(BODIES)) == surface
    assert spoken_for(chat, None) == surface
    assert spoken_for(chat, frozenset()) is None


@pytest.mark.parametrize(("client", "spoken"), [(client, each) for client, others in SPOKEN.items() for each in others])
def test_every_translation_that_is_promised_is_there(client: str, spoken: str) -> None:
    chat = read_request(client, body(client))
    assert spoken in acceptable(chat)
    assert spoken_for(chat, frozenset((spoken,))) == spoken
    assert json.loads(translation(client, spoken).request(body(client)).body)["model"] == "m"


def test_every_generating_client_may_be_served_over_chat() -> None:
    generating = {name for name, each in SURFACES.items() if each.kind is Kind.GENERATION} - {"chat", "completions"}
    assert all(SPOKEN[name][0] == "chat" for name in generating)


def test_what_has_no_place_in_a_translation_is_spoken_or_not_at_all() -> None:
    chat = read_request("responses", body("responses", previous_response_id="resp_1"))
    assert (chat.lost, chat.previous) == (("previous_response_id",), "resp_1")
    assert acceptable(chat) == {"responses"}
    assert spoken_for(chat, frozenset(("chat",))) is None


def test_a_raw_prompt_goes_over_completions() -> None:
    chat = read_request("ollama_generate", body("ollama_generate", raw=True))
    assert (chat.hub, chat.lost) == ("completions", ())
    assert acceptable(chat) == {"ollama_generate", "completions"}
    assert spoken_for(chat, frozenset(("chat", "completions"))) == "completions"
    assert spoken_for(chat, frozenset(("chat",))) is None


def test_a_turn_of_the_system_s_is_translated_where_an_engine_copies_the_dialect() -> None:
    turns = [*TURNS, {"role": "system", "content": "mind this"}]
    chat = read_request("messages", body("messages", messages=turns))
    assert spoken_for(chat, frozenset(("chat", "messages"))) == "chat"
    assert spoken_for(chat, frozenset(("messages",))) == "messages"
    quoted = read_request("messages", body("messages", messages=[{"role": "user", "content": '"role": "system"'}]))
    assert spoken_for(quoted, frozenset(("chat", "messages"))) == "messages"
