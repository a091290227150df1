from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import MalformedRequest
from gateway.wire.images import parse_images
from gateway.wire.speech import parse_speech


def body(**more: Any) -> bytes:
    return json.dumps({"model": "x", **more}).encode()


def test_pictures() -> None:
    req = parse_images(body(prompt="a cat", n=3, size="512x512"))
    assert (req.surface, req.n, req.stream, req.text.pieces) == ("images", 3, False, [b"a cat"])
    assert parse_images(body(prompt="a cat", n=None, stream=True, partial_images=2)).stream


def test_speech() -> None:
    req = parse_speech(body(input="Hello", voice="alloy", response_format="mp3"))
    assert (req.surface, req.stream, req.text.pieces) == ("speech", False, [b"Hello"])
    assert parse_speech(body(input="Hello", stream_format="sse")).stream
    assert not parse_speech(body(input="Hello", stream_format="audio")).stream


@pytest.mark.parametrize(
    ("parse", "more", "param"),
    [
        (parse_images, {}, "prompt"),
        (parse_images, {"prompt": ["a"]}, "prompt"),
        (parse_images, {"prompt": "a", "n": 0}, "n"),
        (parse_images, {"prompt": "a", "n": 1.5}, "n"),
        (parse_speech, {}, "input"),
        (parse_speech, {"input": None}, "input"),
        (parse_speech, {"input": 3}, "input"),
    ],
)
def test_what_is_refused(parse: Any, more: dict[str, Any], param: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        parse(body(**more))
    assert caught.value.param == param
