"""Edits, models, names, loading and errors."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import ollama
import pytest

from gateway.errors import MalformedRequest, Saturated, UnknownModel
from gateway.wire.ollama.created_at import created_at
from gateway.wire.ollama.edits import edits
from gateway.wire.ollama.errors import error_body, error_line
from gateway.wire.ollama.load import load_answer, load_request
from gateway.wire.ollama.models import OllamaModel, ps, show, tags, version
from gateway.wire.ollama.names import plain
from gateway.wire.ollama.stream import OllamaStream
from gateway.wire.splice import splice
from gateway.wire.stream_view import EventKind
from tests.wire.ollama.samples import CREATED, STAMP


def test_k3_the_budget_changes_and_nothing_else_in_the_options() -> None:
    start, end = b'{"model":"a", "options": ', b' ,"messages":[ ]}'
    for options, changed in (
        (
            b'{ "seed":1.0,"num_predict" : -1, "\\u0073top":["x"]}',
            b'{ "seed":1.0,"num_predict" : 64, "\\u0073top":["x"]}',
        ),
        (b'{"z":1,  "a":2 }', b'{"z":1,  "a":2,"num_predict":64 }'),
        (b"{}", b'{"num_predict":64}'),
        (b"null", b'{"num_predict":64}'),
    ):
        body = start + options + end
        assert splice(body, edits(body, None, None, 64)) == start + changed + end
    assert splice(b'{"model":"a"}', edits(b'{"model":"a"}', "b", False, 64)) == (
        b'{"model":"b","stream":false,"options":{"num_predict":64}}'
    )
    assert edits(b"{}", None, True, 0) == {"stream": b"true", "options": b'{"num_predict":1}'}
    assert edits(b'{"options":7}', "x", None, None) == {"model": b'"x"'}


def test_a_budget_can_not_stand_in_what_is_no_object() -> None:
    for options in (b"7", b'"{}"', b"[]"):
        with pytest.raises(MalformedRequest) as refused:
            edits(b'{"options":' + options + b"}", None, None, 5)
        assert refused.value.param == "options"


BIG = OllamaModel(
    "org/big:q4", 32_768, 8_030_261_248, 4_900_000_000, "Q4_K_M", "qwen3", ("completion", "tools"), 1_800_000_000
)
BARE = OllamaModel("bare")


def test_c6_models_as_the_official_client_reads_them() -> None:
    listed = ollama.ListResponse.model_validate_json(tags([BIG, BARE])).models
    assert [model.model for model in listed] == ["org/big:q4", "bare"]
    assert listed[0].modified_at == datetime(2027, 1, 15, 8, tzinfo=UTC)
    assert listed[0].size == 4_900_000_000
    details = listed[0].details
    assert details is not None
    assert (details.parameter_size, details.quantization_level, details.family) == ("8.0B", "Q4_K_M", "qwen3")
    raw = json.loads(tags([BIG, BARE]))["models"]
    assert [one["name"] for one in raw] == ["org/big:q4", "bare"]
    assert len({one["digest"] for one in raw}) == 2
    assert all(len(one["digest"]) == 64 for one in raw)
    running = ollama.ProcessResponse.model_validate_json(ps([BIG])).models[0]
    assert (running.context_length, running.size_vram, running.name) == (32_768, 4_900_000_000, "org/big:q4")
    assert running.expires_at is not None
    assert running.expires_at.year == 9999
    shown = ollama.ShowResponse.model_validate_json(show(BIG))
    assert shown.modelinfo == {
        "general.architecture": "qwen3",
        "general.basename": "org/big:q4",
        "general.parameter_count": 8_030_261_248,
        "qwen3.context_length": 32_768,
    }
    assert shown.capabilities == ["completion", "tools"]
    assert (shown.parameters or "").split() == ["num_ctx", "32768"]
    bare = ollama.ShowResponse.model_validate_json(show(BARE))
    assert bare.modelinfo == {"general.architecture": "unknown", "general.basename": "bare"}
    assert json.loads(version("0.12.0")) == {"version": "0.12.0"}
    assert json.loads(tags([])) == {"models": []}


@pytest.mark.parametrize(
    ("params", "shown"),
    [(1_000, "1.0K"), (23_000_000, "23.0M"), (135_000_000, "135M"), (671_000_000_000, "671B"), (999, "999")],
)
def test_sizes(params: int, shown: str) -> None:
    assert json.loads(show(OllamaModel("m", params=params)))["details"]["parameter_size"] == shown


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("qwen:latest", "qwen"),
        ("Qwen:LATEST", "Qwen"),
        ("qwen:4b", "qwen:4b"),
        ("qwen", "qwen"),
        ("library/qwen:latest", "qwen"),
        ("registry.ollama.ai/library/qwen:4b", "qwen:4b"),
        ("registry.ollama.ai/org/qwen", "org/qwen"),
        ("org/qwen:latest", "org/qwen"),
        ("latest", "latest"),
        (":latest", ":latest"),
        ("library/", "library/"),
        ("", ""),
    ],
)
def test_n1_names_that_mean_the_same(name: str, short: str) -> None:
    assert plain(name) == short
    assert plain(short) == short


@pytest.mark.parametrize(
    ("body", "loads"),
    [
        ({"model": "m"}, True),
        ({"model": "m", "messages": []}, True),
        ({"model": "m", "messages": None, "keep_alive": 0}, True),
        ({"model": "m", "prompt": "", "options": {"num_ctx": 9}}, True),
        ({"model": "m", "input": [], "prompt": ""}, True),
        ({"model": "m", "prompt": " "}, False),
        ({"model": "m", "input": ["a"]}, False),
        ({"model": "m", "input": "a"}, False),
        ({"model": "m", "messages": [{}]}, False),
        ({"model": "m", "messages": {}}, False),
        ({"model": "m", "prompt": "", "images": ["x"]}, False),
        ({"model": "m", "options": {"x": "y" * 20_000}}, False),
        ({"messages": []}, False),
        ([], False),
    ],
)
def test_what_asks_to_load_a_model(body: Any, loads: bool) -> None:
    assert load_request(json.dumps(body, indent=1).encode()) is loads


def test_what_can_not_be_read_asks_for_nothing() -> None:
    assert not load_request(b"")
    assert not load_request(b'{"model":"m"')
    assert not load_request(b"[" * 10_000)
    assert load_request(b'{"model":"m","messages":[ \n]}')


def test_the_answers_to_loading_and_unloading() -> None:
    chat = load_answer(b'{"model":"m"}', "ollama_chat", STAMP)
    assert json.loads(chat) == {
        "model": "lake",
        "created_at": CREATED,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "load",
    }
    assert ollama.ChatResponse.model_validate_json(chat).done_reason == "load"
    for keep_alive in (b"0", b'"0s"', b"0.0"):
        told = load_answer(b'{"model":"m","keep_alive":' + keep_alive + b"}", "ollama_generate", STAMP)
        read = ollama.GenerateResponse.model_validate_json(told)
        assert (read.response, read.done, read.done_reason) == ("", True, "unload")
    kept = load_answer(b'{"model":"m","keep_alive":"5m"}', "ollama_generate", STAMP)
    assert json.loads(kept)["done_reason"] == "load"
    empty = load_answer(b'{"model":"m"}', "ollama_embed", STAMP)
    assert ollama.EmbedResponse.model_validate_json(empty).embeddings == []
    assert ollama.EmbeddingsResponse.model_validate_json(empty).embedding == []


def test_e1_errors_as_ollamas_clients_read_them() -> None:
    unknown = UnknownModel("The model 'x' does not exist here.", param="model", decision_id="d1")
    told = json.loads(error_body(unknown))
    assert told == {
        "error": "The model 'x' does not exist here.",
        "code": "model_not_found",
        "param": "model",
        "reason": str(unknown.reason),
        "decision_id": "d1",
    }
    raised = ollama.ResponseError(error_body(unknown).decode(), unknown.status)
    assert (raised.error, raised.status_code) == ("The model 'x' does not exist here.", 404)


def test_s3_an_error_in_a_stream_is_a_line_of_its_own() -> None:
    line = error_line(Saturated("All are busy."))
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    told = json.loads(line)
    assert (told["error"], told["status"]) == ("All are busy.", 429)
    assert "done" not in told
    seen = OllamaStream().see(line)
    assert seen.kind is EventKind.ERROR
    assert seen.error is not None
    assert (seen.error["message"], seen.error["code"]) == ("All are busy.", 429)


def test_times_are_told_as_far_as_four_digits_go() -> None:
    assert created_at(0) == "1970-01-01T00:00:00Z"
    assert created_at(-5) == "1970-01-01T00:00:00Z"
    assert created_at(10**18) == "9999-12-31T23:59:59Z"
