from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import MalformedRequest
from gateway.wire.tokenizing import parse_detokenize, parse_tokenize


def body(**more: Any) -> bytes:
    return json.dumps(more).encode()


@pytest.mark.parametrize(
    ("more", "texts"),
    [
        ({"prompt": "Hi", "add_special_tokens": True}, [b"Hi"]),
        ({"content": "Hi", "with_pieces": True}, [b"Hi"]),
        ({"content": [1, "Hi"]}, [b'[1, "Hi"]']),
        ({"prompt": ["Hi", "you"]}, [b"Hi", b"you"]),
        ({"messages": [{"role": "user", "content": "Hi"}]}, [b"user\nHi\n"]),
        ({"messages": [{"role": "user", "content": "Hi"}], "tools": [{}]}, [b"[{}]", b"user\nHi\n"]),
        ({"messages": [{"role": "user", "content": "Hi"}], "tools": None}, [b"user\nHi\n"]),
    ],
)
def test_the_dialects_of_tokenization(more: dict[str, Any], texts: list[bytes]) -> None:
    req = parse_tokenize(body(**more))
    assert (req.surface, req.model, req.text.pieces) == ("tokenize", "", texts)


def test_tokens_back_to_text() -> None:
    req = parse_detokenize(body(model="m", tokens=[1, 2, 3]))
    assert (req.surface, req.model, req.prompt_tokens, req.text.pieces) == ("detokenize", "m", 3, [])
    assert parse_detokenize(body(tokens=[[1], [2, 3]])).prompt_tokens == 3
    assert parse_detokenize(body(tokens=[])).prompt_tokens == 0


@pytest.mark.parametrize(
    ("parse", "more", "param"),
    [
        (parse_tokenize, {}, "prompt"),
        (parse_tokenize, {"prompt": None, "content": None}, "prompt"),
        (parse_tokenize, {"prompt": 3}, "prompt"),
        (parse_tokenize, {"messages": []}, "messages"),
        (parse_tokenize, {"content": [None]}, "content[0]"),
        (parse_tokenize, {"content": []}, "content"),
        (parse_detokenize, {}, "tokens"),
        (parse_detokenize, {"tokens": "Hi"}, "tokens"),
        (parse_detokenize, {"tokens": [1, "a"]}, "tokens"),
    ],
)
def test_what_is_refused(parse: Any, more: dict[str, Any], param: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        parse(body(**more))
    assert caught.value.param == param
