from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.wire.anthropic.edits import edits
from gateway.wire.anthropic.whole import read_answer
from gateway.wire.splice import splice
from tests.recordings import recording


@pytest.mark.parametrize(
    ("name", "usage"),
    [("llama_cpp_whole", (36, 8, 25)), ("vllm_whole", (20, 4, 0)), ("llama_cpp_thinking", (14, 3, 13))],
)
def test_a_whole_message(name: str, usage: tuple[int, int, int]) -> None:
    body = recording("anthropic", name).body
    read = read_answer(body, None)
    assert read is not None
    assert (read.body, read.finish_reason) == (body, "length")
    assert read.usage is not None
    assert (read.usage.prompt_tokens, read.usage.completion_tokens, read.usage.cached_tokens) == usage
    named = read_answer(body, "alias")
    assert named is not None
    served = json.loads(body)["model"]
    assert named.body == body.replace(f'"model":"{served}"'.encode(), b'"model":"alias"')


@pytest.mark.parametrize("name", ["llama_cpp_too_long", "vllm_too_long", "vllm_overloaded", "llama_cpp_count"])
def test_what_is_no_message(name: str) -> None:
    assert read_answer(recording("anthropic", name).body, "alias") is None


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b'{"content":5}', b'{"content":[],"error":{}', b"\xff"])
def test_garbage(body: bytes) -> None:
    assert read_answer(body, "alias") is None


def test_nan_is_read_past() -> None:
    read = read_answer(b'{"content":[NaN],"model":"m","stop_reason":"end_turn"}', "alias")
    assert read is not None
    assert read.finish_reason == "stop"


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ((None, None, None), b'{"model": "m", "max_tokens":9,"x" : 1.0}'),
        (("served", True, 5), b'{"model": "served", "max_tokens":5,"x" : 1.0,"stream":true}'),
        ((None, False, None), b'{"model": "m", "max_tokens":9,"x" : 1.0,"stream":false}'),
    ],
)
def test_edits_touch_nothing_else(asked: Any, made: bytes) -> None:
    assert splice(b'{"model": "m", "max_tokens":9,"x" : 1.0}', edits(*asked)) == made
