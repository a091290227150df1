from __future__ import annotations

import json
from typing import Any

from gateway.engines.adapter import Facts
from gateway.engines.ollama import Ollama
from gateway.engines.ollama_models import DEFAULT_WINDOW, GENERATES
from tests.engines.cases import answer, ollama

OLLAMA = Ollama()
CASE = ollama.CASE


def facts() -> Facts:
    return OLLAMA.facts(CASE.discovery | CASE.follow_up)


def listed(*models: dict[str, Any]) -> Facts:
    return OLLAMA.facts({"/api/tags": answer({"models": models})})


def test_each_model_has_its_own_surfaces_and_abilities() -> None:
    chat, writer, embedder = facts().models
    assert chat.surfaces == GENERATES - {"messages"}  # the server has no such route
    assert chat.abilities == {"tools", "json_schema", "logprobs"}
    assert writer.abilities == {"vision", "json_schema", "logprobs"}
    assert embedder.surfaces == {"embeddings", "ollama_embed"}
    assert (chat.params, chat.size_bytes, chat.trained_window) == (8_190_735_360, 5_200_000_000, 40_960)
    assert writer.params == 8_200_000_000  # from the list, where the details don't tell
    assert (chat.aliases, writer.aliases) == ((), ("writer",))


def test_c5_a_window_that_is_not_known_is_said_to_be() -> None:
    embedder = facts().models[2]
    assert (embedder.window, embedder.default_window) == (None, 512)
    assert any("all-minilm:latest" in note and "without a word" in note for note in facts().notes)
    (plain,) = listed({"name": "m:7b"}).models
    assert (plain.window, plain.default_window) == (None, DEFAULT_WINDOW)


def test_c5_a_prompt_is_not_cut_where_the_api_can_be_told_so() -> None:
    for surface in ("ollama_chat", "ollama_generate"):
        assert OLLAMA.surface_edits(surface) == {"keep_alive": None, "truncate": b"false", "shift": b"false"}
    assert OLLAMA.surface_edits("chat") == {"keep_alive": None}


def test_a_window_is_never_over_what_the_weights_were_trained_for() -> None:
    details = answer({"parameters": "num_ctx 99999", "model_info": {"x.context_length": 4096}})
    found = OLLAMA.facts({"/api/tags": answer({"models": [{"name": "m", "digest": "d"}]}), "/api/show m d": details})
    assert found.models[0].window == 4096


def test_what_it_forwards_to_a_hosted_service_is_left_out() -> None:
    found = listed(
        {"name": "a:cloud"},
        {"name": "b:120b-cloud"},
        {"name": "c", "remote_host": "https://ollama.com"},
        {"name": "d", "remote_model": "d"},
        {"name": "home"},
    )
    assert [model.id for model in found.models] == ["home"]
    assert any("left out 4 models" in note for note in found.notes)
    assert not any(
        "show" in probe.path for probe in OLLAMA.follow_up({"/api/tags": answer({"models": [{"name": "a:cloud"}]})})
    )


def test_details_are_asked_for_anew_when_a_model_was_pulled_anew() -> None:
    def asked(digest: str) -> dict[str, bytes]:
        tags = answer({"models": [{"name": "m", "digest": digest}]})
        return {probe.key: probe.body for probe in OLLAMA.follow_up({"/api/tags": tags}) if probe.path == "/api/show"}

    assert asked("one") == {"/api/show m one": b'{"model":"m"}'}
    assert asked("one").keys() != asked("two").keys()


def test_not_all_of_a_long_list_is_asked_about() -> None:
    tags = answer({"models": [{"name": f"m{i}", "digest": "d"} for i in range(500)]})
    probes = OLLAMA.follow_up({"/api/tags": tags})
    assert len(probes) <= 70
    assert len(OLLAMA.facts({"/api/tags": tags}).models) == 500


def test_an_old_server_tells_no_capabilities() -> None:
    old, bert = listed({"name": "m"}, {"name": "e", "details": {"family": "bert", "parameter_size": "23M"}}).models
    assert (old.surfaces, old.abilities) == (None, None)
    assert (bert.surfaces, bert.params) == (frozenset({"embeddings", "ollama_embed"}), 23_000_000)


def test_odd_entries() -> None:
    odd = [{"name": 3}, {}, {"name": "m", "details": 3, "size": "x", "digest": None}]
    (model,) = listed(*odd).models
    assert (model.id, model.params, model.size_bytes) == ("m", None, None)
    shown = answer({"parameters": 3, "model_info": [], "capabilities": [1, "new"]})
    found = OLLAMA.facts({"/api/tags": answer({"models": [{"name": "m", "digest": "d"}]}), "/api/show m d": shown})
    assert found.models[0].surfaces == frozenset()
    assert json.dumps(found.notes)


def test_what_is_loaded_tells_each_slots_room_and_what_is_outside_the_device() -> None:
    def loaded(*models: dict[str, Any]) -> Facts:
        return OLLAMA.facts({"/api/tags": answer({"models": []}), "/api/ps": answer({"models": models})})

    found = loaded(
        {"name": "a", "size": 10_000, "size_vram": 7_500, "context_length": 8192},
        {"name": "b", "size": 10_000, "size_vram": 10_000, "context_length": 32_768},
        {"name": "c", "size": 10_000, "size_vram": "odd"},
    )
    assert found.pool.slot_tokens == 32_768
    said = [note for note in found.notes if "CPU" in note]
    assert said == ["25% of a is in the CPU's memory: a smaller context or fewer slots would fit"]
    assert loaded().pool.slot_tokens is None
