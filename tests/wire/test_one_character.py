"""A token event that says one character and no more, in every dialect."""

from __future__ import annotations

import json

import pytest

from gateway.wire.one_character import one_character


def chat(text: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode() + b"\n\n"


@pytest.mark.parametrize(
    ("event", "character"),
    [
        (chat("!"), "!"),
        (chat("!!!!!!"), "!"),
        (b'data: {"choices":[{"delta":{"content":"/"}}]}\n\n', "/"),
        (b'data: {"choices":[{"index":0,"text":"G"}]}\n\n', "G"),
        (b'event: content_block_delta\ndata: {"delta":{"type":"text_delta","text":"!"}}\n\n', "!"),
        (b'data: {"type":"response.output_text.delta","delta":"??"}\n\n', "?"),
        (b'{"model":"m","message":{"role":"assistant","content":"!"},"done":false}\n', "!"),
        (chat("!?"), ""),
        (chat(""), ""),
        (chat(None), ""),
        (chat("0"), ""),
        (chat("----"), ""),
        (chat("    "), ""),
        (chat("the"), ""),
        (b"data: [DONE]\n\n", ""),
        (b": keepalive\n\n", ""),
        (b"\xff\xfe", ""),
    ],
)
def test_what_an_event_says(event: bytes, character: str) -> None:
    assert one_character(event) == character
