"""What all plain surfaces share: names, limits, errors, and what of them can be measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.core.estimators.prompt_tokens import count_text
from gateway.core.prefix.chain import fingerprint
from gateway.errors import MalformedRequest
from gateway.wire.chat_request import ChatRequest
from gateway.wire.embeddings import parse_embeddings
from gateway.wire.images import parse_images
from gateway.wire.rerank import parse_rerank, parse_score
from gateway.wire.speech import parse_speech
from gateway.wire.tokenizing import parse_detokenize, parse_tokenize
from tests.wire.json_text import values

PLAIN: list[tuple[str, Callable[[bytes], ChatRequest], dict[str, Any]]] = [
    ("embeddings", parse_embeddings, {"input": "Hi"}),
    ("rerank", parse_rerank, {"query": "Hi", "documents": ["a", "b"]}),
    ("score", parse_score, {"text_1": "Hi", "text_2": ["a", "b"]}),
    ("tokenize", parse_tokenize, {"prompt": "Hi"}),
    ("detokenize", parse_detokenize, {"tokens": [1, 2]}),
    ("images", parse_images, {"prompt": "Hi"}),
    ("speech", parse_speech, {"input": "Hi", "voice": "x"}),
]
each = pytest.mark.parametrize(("surface", "parse", "body"), PLAIN, ids=[name for name, _, _ in PLAIN])


@each
def test_nothing_is_decoded(surface: str, parse: Callable[[bytes], ChatRequest], body: dict[str, Any]) -> None:
    raw = json.dumps({"model": "m", **body, "x_unknown": [1]}).encode()
    req = parse(raw)
    assert (req.surface, req.model, req.stream, req.n) == (surface, "m", False, 1)
    assert (req.max_tokens, req.max_tokens_field, req.needs, req.session) == (0, None, frozenset(), None)
    assert [member.key for member in req.members] == ["model", *body, "x_unknown"]


@each
def test_an_engine_of_one_model_needs_no_name(
    surface: str, parse: Callable[[bytes], ChatRequest], body: dict[str, Any]
) -> None:
    assert parse(json.dumps(body).encode()).model == ""
    assert parse(json.dumps({**body, "model": None}).encode()).model == ""


@each
def test_it_can_be_measured(surface: str, parse: Callable[[bytes], ChatRequest], body: dict[str, Any]) -> None:
    text = parse(json.dumps(body).encode()).text
    whole = (b"".join(text.pieces),)
    assert text.message_ends == [] or text.message_ends[-1] == len(whole[0])
    count_text(whole, text.messages)
    fingerprint(whole, text.message_ends, b"salt")


@each
@pytest.mark.parametrize("model", [1, [], {}, True])
def test_a_model_is_a_name(
    surface: str, parse: Callable[[bytes], ChatRequest], body: dict[str, Any], model: object
) -> None:
    with pytest.raises(MalformedRequest) as caught:
        parse(json.dumps({**body, "model": model}).encode())
    assert caught.value.param == "model"


@each
def test_a_member_given_twice_is_refused(
    surface: str, parse: Callable[[bytes], ChatRequest], body: dict[str, Any]
) -> None:
    raw = json.dumps({"model": "a", **body}).encode()
    with pytest.raises(MalformedRequest) as caught:
        parse(raw[:-1] + b',"\\u006dodel":"b"}')
    assert (caught.value.code, caught.value.param) == ("duplicate_member", "model")


@each
@pytest.mark.parametrize("body_", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"model":"\xff"}', b'{"a":' * 5000])
def test_what_is_no_object_is_refused(
    surface: str, parse: Callable[[bytes], ChatRequest], body: dict[str, Any], body_: bytes
) -> None:
    with pytest.raises(MalformedRequest):
        parse(body_)


@each
def test_half_a_character_is_refused_by_name(
    surface: str, parse: Callable[[bytes], ChatRequest], body: dict[str, Any]
) -> None:
    name = next(iter(body))
    raw = json.dumps({**body, name: "@"}).encode().replace(b"@", rb"\ud83d")
    with pytest.raises(MalformedRequest) as caught:
        parse(raw)
    assert caught.value.param in (name, None)


names = st.sampled_from(
    [
        "model",
        "input",
        "messages",
        "tools",
        "query",
        "documents",
        "texts",
        "prompt",
        "content",
        "tokens",
        "n",
        "text_1",
        "text_2",
        "data_1",
        "data_2",
        "queries",
        "items",
        "stream",
        "stream_format",
    ]
)
shapes = st.one_of(
    values,
    st.sampled_from(
        [
            b'["a",{"text":"b"},[1,2]]',
            b"[[1,2],[3]]",
            b"[1,2,3]",
            b'[1,"a",{"text":null}]',
            b'{"content":[{"type":"image_url","image_url":{"url":"x"}},"t"],"text":1}',
            b'[{"role":"user","content":"Hi"}]',
            b"[99999999999999999999999999]",
            b'[[99999999999999999999999999,"a"]]',
        ]
    ),
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(names, shapes, max_size=5))
@example({"input": b'[{"content":[[[]]]}]'})
def test_only_a_malformed_request_comes_out(members: dict[str, bytes]) -> None:
    body = b"{" + b",".join(json.dumps(name).encode() + b":" + value for name, value in members.items()) + b"}"
    for surface, parse, _ in PLAIN:
        try:
            req = parse(body)
        except MalformedRequest:
            continue
        assert req.surface == surface
        assert req.prompts >= 1
        assert req.text.messages == 0 or req.text.message_ends[-1] == len(b"".join(req.text.pieces))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40))
def test_bytes_are_read_or_refused(body: bytes) -> None:
    for _, parse, _ in PLAIN:
        with pytest.raises(MalformedRequest):
            parse(body)
