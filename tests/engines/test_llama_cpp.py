from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.engines.adapter import Answer, FailureKind, Load
from gateway.engines.llama_cpp import LlamaCpp
from gateway.engines.registry import engine
from gateway.wire.splice import splice
from tests.engines.probed import answers, body, chat, page
from tests.recordings import recording

LLAMA = LlamaCpp()
NAME = "llama.cpp"


def props(window: int, slots: int, **more: Any) -> Answer:
    told = {"default_generation_settings": {"n_ctx": window}, "total_slots": slots, **more}
    return page(json.dumps(told))


def models(trained: int, window: int) -> Answer:
    return page(json.dumps({"data": [{"id": "m", "meta": {"n_ctx_train": trained, "n_ctx": window}}]}))


def test_facts_of_a_real_server() -> None:
    facts = LLAMA.facts(answers(NAME, props="get_props", v1_models="get_models"))
    (model,) = facts.models
    assert (model.id, model.aliases, model.window, model.trained_window) == ("smollm2", (), 4096, 8192)
    assert (model.params, model.size_bytes) == (134515008, 96576768)
    assert (facts.slots, facts.pool_tokens, facts.block, facts.unified) == (2, 8192, 1, False)
    assert facts.version == "b0-unknown"
    assert facts.abilities == {"json_schema", "logprobs"}
    assert not facts.loading


@pytest.mark.parametrize(
    ("window", "slots", "trained", "unified", "pool"),
    [
        (4096, 2, 8192, False, 8192),
        (8192, 4, 8192, True, 8192),
        (4096, 4, 8192, False, 16384),
        (8192, 1, 8192, False, 8192),
        (8192, 2, 8192, False, 16384),
    ],
)
def test_the_pool_follows_from_slots_and_window(
    window: int, slots: int, trained: int, unified: bool, pool: int
) -> None:
    facts = LLAMA.facts({"/props": props(window, slots), "/v1/models": models(trained, window)})
    assert (facts.unified, facts.pool_tokens) == (unified, pool)
    assert facts.pool.slot_tokens == (window if slots == 4 and not unified else None)
    assert bool(facts.notes) == (slots > 1)  # it can't be read, so what was assumed is said


def test_abilities_are_read_from_template_and_modalities() -> None:
    told = props(4096, 1, chat_template_caps={"supports_tools": True}, modalities={"vision": True, "audio": False})
    assert LLAMA.facts({"/props": told}).abilities == {"tools", "vision", "json_schema", "logprobs"}


def test_aliases_are_found() -> None:
    told = page(json.dumps({"data": [{"id": "a", "aliases": ["a", "b", 3]}, {"no": "id"}, 7]}))
    (model,) = LLAMA.facts({"/v1/models": told}).models
    assert (model.id, model.aliases, model.window) == ("a", ("b",), None)


def test_loading_is_a_state_of_its_own() -> None:
    loading = answers(NAME, props="loading_health", v1_models="loading_health")
    assert LLAMA.facts(loading).loading
    assert LLAMA.load(answers(NAME, metrics="loading_metrics", slots="loading_metrics")) == Load(loading=True)
    failure = LLAMA.failure(503, recording(NAME, "loading_chat").body)
    assert (failure.kind, failure.retryable, failure.blame) == (FailureKind.LOADING, True, False)


def test_no_answers_no_facts() -> None:
    for found in (
        {},
        {"/props": page("", 404), "/v1/models": page("<html>")},
        answers(NAME, props="api_key_missing_401"),
    ):
        facts = LLAMA.facts(found)
        assert (facts.models, facts.slots, facts.pool_tokens, facts.unified) == ((), None, None, None)
        assert facts.notes


def test_load_at_rest_and_under_load() -> None:
    rest = LLAMA.load(answers(NAME, slots="get_slots_idle", metrics="get_metrics"))
    assert rest == Load(running=0, waiting=0, kv_tokens=0, tokens_generated=504.0)
    busy = LLAMA.load(answers(NAME, slots="overload_slots", metrics="overload_metrics"))
    assert (busy.running, busy.waiting, busy.kv_tokens) == (2, 4, 72)


def test_what_sits_in_a_free_slot_is_not_in_use() -> None:
    load = LLAMA.load(answers(NAME, slots="slots_after_prefix"))
    assert load == Load(running=0, kv_tokens=0)


def test_what_is_switched_off_is_unknown_not_zero() -> None:
    off = page('{"error":{"code":501,"message":"This server does not support metrics endpoint.","type":"x"}}', 501)
    assert LLAMA.load({"/metrics": off, "/slots": off}) == Load()
    assert LLAMA.load(answers(NAME, metrics="get_metrics")).kv_tokens is None
    assert LLAMA.load(answers(NAME, slots="overload_slots")).running == 2


def test_generated_tokens_are_counted_once() -> None:
    def slot(**told: Any) -> Load:
        return LLAMA.load({"/slots": page(json.dumps([{"id": 0, "is_processing": True, **told}]))})

    done = {"n_prompt_tokens_processed": 31, "n_prompt_tokens_cache": 0, "next_token": [{"n_decoded": 276}]}
    assert slot(n_prompt_tokens=307, **done).kv_tokens == 307  # the total, as newer builds tell it
    assert slot(n_prompt_tokens=31, **done).kv_tokens == 307  # the prompt's alone
    assert slot(n_prompt_tokens=500, n_prompt_tokens_processed=100, next_token=[]).kv_tokens == 500


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("err_prompt_too_long", FailureKind.CONTEXT),
        ("err_bad_json", FailureKind.CLIENT),
        ("err_bad_role", FailureKind.CLIENT),
        ("err_image_unsupported", FailureKind.CLIENT),
        ("err_no_messages", FailureKind.CLIENT),
        ("err_wrong_type", FailureKind.CLIENT),
        ("chat_json_schema_bad", FailureKind.CLIENT),
        ("chat_n3_over_slots", FailureKind.CLIENT),
        ("api_key_missing_401", FailureKind.CREDENTIALS),
        ("loading_chat", FailureKind.LOADING),
        ("embeddings_not_enabled", FailureKind.NOT_OFFERED),
        ("post_models_405", FailureKind.NOT_OFFERED),
    ],
)
def test_recorded_failures(name: str, kind: FailureKind) -> None:
    answer = recording(NAME, name)
    failure = LLAMA.failure(answer.status, answer.body)
    assert failure.kind is kind
    assert failure.blame == (kind is FailureKind.CREDENTIALS)
    assert failure.message


def test_an_overflow_tells_both_numbers() -> None:
    failure = LLAMA.failure(400, recording(NAME, "err_prompt_too_long").body)
    assert (failure.limit, failure.requested, failure.retryable) == (4096, 6031, False)
    assert "maximum context length is 4096 tokens" in failure.message
    assert "6031" in failure.message


def test_a_full_pool_is_nobodys_prompt() -> None:
    event = recording(NAME, "kv_unified_full_1").body
    failure = LLAMA.failure(200, event.removeprefix(b"data: ").strip())
    assert (failure.kind, failure.retryable, failure.blame) == (FailureKind.MEMORY, True, False)


def test_another_server_may_have_more_slots() -> None:
    assert LLAMA.failure(400, recording(NAME, "chat_n3_over_slots").body).retryable


@pytest.mark.parametrize(
    ("more", "streams"),
    [
        ({}, True),
        ({"stream": True}, True),
        ({"logprobs": True}, True),
        ({"stop": ["x"]}, True),
        ({"tools": [{}]}, True),
        ({"n": 2}, True),
        ({"stop": ["x"], "logprobs": True}, False),
        ({"tools": [{}], "logprobs": True}, False),
        ({"tools": [{}], "n_probs": 2}, False),
        ({"verbose": True}, False),
        ({"verbose": True, "stream": True}, True),
    ],
)
def test_what_is_asked_for_as_a_stream(more: dict[str, Any], streams: bool) -> None:
    assert LLAMA.streams_upstream(chat(**more)) is streams


def edited(budget: int | None = None, upstream: bool = True, **more: Any) -> dict[str, Any]:
    edits = LLAMA.edits(chat(**more), served_as="served", stream=upstream, max_tokens=budget)
    result: dict[str, Any] = json.loads(splice(body(**more), edits))
    result.pop("messages")
    return result


def test_a_whole_answer_is_asked_for_as_a_stream_with_usage() -> None:
    assert edited() == {"model": "served", "stream": True, "stream_options": {"include_usage": True}}
    assert edited(stream_options={"x": 1})["stream_options"] == {"x": 1, "include_usage": True}
    assert edited(stream_options={"include_usage": False})["stream_options"] == {"include_usage": True}


def test_a_clients_stream_is_left_as_it_is() -> None:
    req = chat(stream=True)
    edits = LLAMA.edits(req, served_as="alias", stream=True, max_tokens=None)
    assert splice(body(stream=True), edits) == body(stream=True)


def test_whole_upstream_when_it_must_be() -> None:
    assert edited(upstream=False, verbose=True) == {"model": "served", "verbose": True}


@pytest.mark.parametrize(
    ("more", "max_tokens", "expected"),
    [
        ({}, 100, {"max_tokens": 100}),
        ({"max_tokens": 500}, 100, {"max_tokens": 100}),
        ({"max_completion_tokens": 500}, 100, {"max_completion_tokens": 100}),
        ({"max_completion_tokens": 500, "max_tokens": 3}, 100, {"max_completion_tokens": 100, "max_tokens": 100}),
        ({"max_completion_tokens": 5, "max_tokens": 999}, None, {"max_completion_tokens": 5, "max_tokens": 5}),
        ({"max_completion_tokens": None, "max_tokens": 500}, 100, {"max_tokens": 100}),
        ({"n_predict": 500}, 100, {"max_tokens": 100}),
        ({"n_predict": -1, "max_tokens": 5}, 5, {"max_tokens": 5}),
        ({"n_predict": 7}, None, {"n_predict": 7}),
        ({"n_predict": 7, "max_tokens": 5}, None, {"max_tokens": 5}),
        ({"max_tokens": 5}, None, {"max_tokens": 5}),
    ],
)
def test_no_budget_is_more_than_what_was_decided_upon(
    more: dict[str, Any], max_tokens: int | None, expected: dict[str, int]
) -> None:
    result = edited(max_tokens, **more)
    budgets = {key: value for key, value in result.items() if "max" in key or "predict" in key}
    assert budgets == expected


@pytest.mark.parametrize(
    ("more", "max_tokens", "least"),
    [
        ({"max_tokens": 500, "min_tokens": 400}, 100, 100),
        ({"min_tokens": 400.0}, 100, 100),
        ({"max_tokens": 500, "min_tokens": 40}, 100, 40),
        ({"max_tokens": 500, "min_tokens": 400}, None, 400),
        ({"max_completion_tokens": 50, "max_tokens": 500, "min_tokens": 400}, None, 50),
        ({"min_tokens": "odd"}, 100, "odd"),
    ],
)
def test_no_answer_must_be_longer_than_its_budget(more: dict[str, Any], max_tokens: int | None, least: Any) -> None:
    assert edited(max_tokens, **more)["min_tokens"] == least
    length = {"min_length" if name == "min_tokens" else name: value for name, value in more.items()}
    assert edited(max_tokens, **length)["min_length"] == least


def test_the_slot_is_the_servers_to_choose() -> None:
    assert "id_slot" not in edited(id_slot=1)
    assert edited(min_p=0.1, x_unknown=[1])["x_unknown"] == [1]


def test_its_place_in_the_registry() -> None:
    assert engine("llama.cpp").traits.stream_always
    assert engine("llama.cpp").headers("id") == {}
