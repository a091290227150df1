from __future__ import annotations

import json

import pytest

from gateway.engines.adapter import Answer
from gateway.engines.routes import OPENAPI, listed, probed, probes_of
from tests.engines.cases import answer


def test_half_an_object_is_posted_and_kept() -> None:
    (one, other) = probes_of(("messages", "embeddings"))
    assert (one.method, one.path, one.body, one.kept) == ("POST", "/v1/messages", b"{", True)
    assert other.key == "/v1/embeddings"


@pytest.mark.parametrize(
    ("found", "present", "told"),
    [
        (answer({"error": "bad json"}, 400), True, True),
        (answer({"detail": []}, 422), True, True),
        (answer("", 415), True, True),
        (answer("Internal Server Error", 500), True, True),
        (answer("", 404), False, True),
        (answer("", 405), False, True),
        (answer({"error": {"message": "not supported"}}, 501), False, True),
        (answer("<html>the same page for everything"), False, True),
        (answer({"error": "Unexpected endpoint or method. (POST /v1/messages)"}), False, True),
        (answer({"error": "Unexpected endpoint or method. (POST /v1/messages)"}, 400), False, True),
        (answer("", 401), False, False),
        (answer("", 403), False, False),
        (answer("", 502), False, False),
        (answer("", 503), False, False),
    ],
)
def test_what_an_answer_to_it_tells(found: Answer, present: bool, told: bool) -> None:
    there, known = probed({"/v1/messages": found}, ("messages", "embeddings"))
    assert (there, known) == (frozenset({"messages"} if present else ()), frozenset({"messages"} if told else ()))


def test_a_list_of_paths() -> None:
    paths = answer({"paths": {"/v1/chat/completions": {}, "/v1/tokenize": {"post": {}}, "/other": {}}})
    assert listed({OPENAPI.key: paths}) == {"chat"}
    assert listed({OPENAPI.key: paths}, {"tokenize": "/v1/tokenize"}) == {"chat", "tokenize"}
    assert listed({}) is None
    for none in (answer({"paths": {}}), answer({"paths": []}), answer("<html>"), answer({"detail": "no"}, 404)):
        assert listed({OPENAPI.key: none}) is None


def test_a_list_of_paths_is_read_without_its_schemas() -> None:
    long = {"paths": {"/v1/chat/completions": {"x": ["y"] * 10}}, "components": {str(i): {} for i in range(1000)}}
    assert listed({OPENAPI.key: Answer(200, {}, json.dumps(long).encode())}) == {"chat"}
