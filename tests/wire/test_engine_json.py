"""JSON of any quality, as engines write it: NaN, numbers past 64 bits, half of a character."""

from __future__ import annotations

import json

import msgspec
import pytest

from gateway.errors import StreamBroken
from gateway.wire.engine_json import UNREADABLE, json_of, read_engine
from gateway.wire.translation import Stamp
from gateway.wire.translations import translation

STAMP = Stamp(id="1", created=1_700_000_000, model="lake")
_ANYTHING = msgspec.json.Decoder(dict[str, object])


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b'"\\ud83d"', "\ufffd"),
        (b'"a\\uDE00b"', "a\ufffdb"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\ud83d\\ud83d\\ude00"', "\ufffd\U0001f600"),
        (b"NaN", None),
        (b"-Infinity", None),
        (b"1e999", None),
    ],
)
def test_what_only_some_can_read_is_read_as_what_all_can(written: bytes, read: object) -> None:
    found = read_engine(_ANYTHING, b'{"at":' + written + b"}", "answer")
    assert found == {"at": read}
    assert json.loads(msgspec.json.encode(found)) == found


def test_what_nobody_can_read_is_a_broken_stream() -> None:
    assert json_of(b"{") is UNREADABLE
    for data in (b"{", b"\xff", b"[" * 100_000, b"[]"):
        with pytest.raises(StreamBroken, match="no answer"):
            read_engine(_ANYTHING, data, "answer")


@pytest.mark.parametrize("client", ["messages", "responses", "ollama_chat"])
@pytest.mark.parametrize("where", ["content", "reasoning_content"])
def test_half_a_character_of_a_chat_answer_reaches_no_client(client: str, where: str) -> None:
    message = {"content": "", where: "so \ud83d far"}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    assert "so \ufffd far" in translation(client, "chat").answer(body, None, STAMP).decode()
    chunk = json.dumps({"choices": [{"index": 0, "delta": message}]}).encode()
    writer = translation(client, "chat").writer(None, STAMP)
    assert "so \ufffd far" in (writer.feed(chunk) + writer.end()).decode()
