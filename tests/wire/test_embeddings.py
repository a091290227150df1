from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import MalformedRequest
from gateway.wire.embeddings import MAX_INPUTS, parse_embeddings


def embeddings(**more: Any) -> bytes:
    return json.dumps({"model": "e", **more}).encode()


@pytest.mark.parametrize(
    ("given", "texts", "tokens"),
    [
        ("Hi", [b"Hi"], None),
        ("", [b""], None),
        (["Hi", "é"], [b"Hi", "é".encode()], None),
        ([1, 2, 3], [b"[1,2,3]"], 3),
        ([[1, 2], [3]], [b"[1,2]", b"[3]"], 3),
        ([[]], [b"[]"], 0),
        ([[], [7], []], [b"[]", b"[7]", b"[]"], 1),
        ([-1, 0], [b"[-1,0]"], 2),
        (["Hi", [1, 2]], [b"Hi", b"[1,2]"], None),
        ([1, "Hi", 2], [b'[1, "Hi", 2]'], None),
        ([{"text": "Hi"}, {"text": "you", "id": 7}], [b"Hi", b"you"], None),
        ({"prompt_string": "Hi"}, [b"Hi"], None),
        ([{"a": "b", "c": 1}], [b"b\n1"], None),
        ([{"content": [{"type": "text", "text": "Hi"}, "you"]}], [b"Hi\nyou"], None),
    ],
)
def test_the_shapes_of_an_input(given: Any, texts: list[bytes], tokens: int | None) -> None:
    req = parse_embeddings(embeddings(input=given))
    assert (req.text.pieces, req.prompts, req.prompt_tokens) == (texts, len(texts), tokens)
    assert req.text.messages == len(texts)


def test_pictures_are_told_apart_and_not_counted_as_text() -> None:
    one, other = (
        parse_embeddings(embeddings(input=[{"image": f"data:image/png;base64,{name * 5000}"}, {"text": "a cat"}]))
        for name in "AB"
    )
    assert (one.images, one.needs, one.prompts) == (1, {"vision"}, 2)
    assert one.text.pieces[0] != other.text.pieces[0]
    assert len(one.text.pieces[0]) < 40
    parts = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    assert parse_embeddings(embeddings(input=[{"content": parts}])).needs == {"vision"}


def test_a_conversation_is_one_prompt() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "x"}}]},
        {"role": "assistant", "content": "there"},
    ]
    req = parse_embeddings(embeddings(messages=messages))
    assert (req.surface, req.prompts, req.prompt_tokens, req.images) == ("embeddings", 1, None, 1)
    assert req.text.messages == 2
    assert b"".join(req.text.pieces).endswith(b"assistant\nthere\n")


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({}, "input"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 1}, "input"),
        ({"input": True}, "input"),
        ({"input": ["a", None]}, "input[1]"),
        ({"input": ["a", 1.5]}, "input[1]"),
        ({"input": [[1, [2]]]}, "input[0][1]"),
        ({"input": [[1, None]]}, "input[0][1]"),
        ({"input": [[[1]]]}, "input[0][0]"),
        ({"input": [[1], [[2]], [3]]}, "input[1][0]"),
        ({"input": [1, [[2]]]}, "input[1][0]"),
        ({"input": [1.5, 2]}, "input[0]"),
        ({"input": [[1.0]]}, "input[0][0]"),
        ({"messages": []}, "messages"),
        ({"messages": [{"content": "Hi"}]}, "messages[0].role"),
        ({"input": ["a"] * (MAX_INPUTS + 1)}, "input"),
        ({"input": [[1]] * (MAX_INPUTS + 1)}, "input"),
    ],
)
def test_what_is_refused(more: dict[str, Any], param: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        parse_embeddings(embeddings(**more))
    assert caught.value.param == param


def test_as_many_inputs_as_are_allowed() -> None:
    assert parse_embeddings(embeddings(input=["a"] * MAX_INPUTS)).prompts == MAX_INPUTS
    assert parse_embeddings(embeddings(input=[1] * 100_000)).prompt_tokens == 100_000
