"""The events of a failure go on from those that the client has: numbers, the response's id and its model."""

from __future__ import annotations

import json
from typing import Any

from gateway.errors import StreamBroken
from gateway.wire.anthropic.stream import MessagesStream
from gateway.wire.chat_stream import ChatStream
from gateway.wire.ollama.stream import OllamaStream
from gateway.wire.responses.errors import error_event
from gateway.wire.responses.stream import ResponsesStream
from gateway.wire.responses.stream_from_chat import ResponseWriter
from gateway.wire.sse import Framer
from gateway.wire.translated_stream import TranslatedStream
from gateway.wire.translation import Stamp
from tests.wire.responses.native import OPENAI_TOOLS

_ERROR = StreamBroken("cut")


def told(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in out.split(b"\n") if line.startswith(b"data: ")]


def assert_goes_on(events: list[dict[str, Any]], model: str) -> None:
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    created, failed = events[0]["response"], events[-1]["response"]
    assert (failed["id"], failed["created_at"], failed["model"]) == (created["id"], created["created_at"], model)
    assert created["model"] == model


def test_of_an_engines_own_stream() -> None:
    for count in range(1, len(OPENAI_TOOLS)):
        view = ResponsesStream("alias")
        out = b""
        for payload in OPENAI_TOOLS[:count]:
            out += view.see(
                b"event: %b\ndata: %b\n\n" % (payload["type"].encode(), json.dumps(payload).encode())
            ).forward
        failure = view.failure(_ERROR)
        assert failure is not None
        assert_goes_on(told(out + failure), "alias")


def test_of_a_translated_one() -> None:
    view = TranslatedStream(ChatStream("chat"), ResponseWriter(None, Stamp("a", 7, "alias", stream=True)), Framer())
    out = b""
    for text in ("a", "b", "c"):
        chunk = json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()
        out += view.see(b"data: " + chunk + b"\n\n").forward
        failure = view.failure(_ERROR)
        assert failure is not None
        assert_goes_on(told(out + failure), "alias")


def test_before_anything_and_in_other_dialects() -> None:
    for view in (ResponsesStream("a"), ChatStream("chat"), MessagesStream("a"), OllamaStream("a")):
        assert view.failure(_ERROR) is None
    assert [event["sequence_number"] for event in told(error_event(_ERROR))] == [0, 1]


def test_what_an_engine_numbers_oddly() -> None:
    view = ResponsesStream()
    odd = {"type": "response.created", "response": {"id": 7, "created_at": "x", "model": None}, "sequence_number": "x"}
    view.see(b"event: response.created\ndata: " + json.dumps(odd).encode() + b"\n\n")
    failed = told(view.failure(_ERROR) or b"")[-1]
    assert (failed["sequence_number"], failed["response"]["model"], failed["response"]["created_at"]) == (1, "", 0)
