"""Clients see the name that they asked for, in what only SDKs read as well: NaN, and half a character."""

from __future__ import annotations

import pytest

from gateway.wire.chat_request import parse_chat
from gateway.wire.formats import FORMATS

_CHAT = parse_chat(b'{"model":"m","stream":true,"messages":[{"role":"user","content":"a"}]}')
_WHOLE = {
    "chat": b'{"model":"engine","choices":[{"message":{"content":"x"},"finish_reason":"stop","z":%b}]}',
    "completions": b'{"choices":[{"text":"x","finish_reason":"stop","z":%b}],"model":"engine"}',
    "messages": b'{"type":"message","model":"engine","content":[{"type":"text","text":"a","z":%b}],"usage":{}}',
    "responses": b'{"id":"r","model":"engine","status":"completed","z":%b,"output":[]}',
    "ollama_chat": b'{"model":"engine","message":{"role":"assistant","content":"a","z":%b},"done":true}',
    "ollama_generate": b'{"model":"engine","response":"a","z":%b,"done":true}',
}
_EVENTS = {
    "chat": b'data: {"model":"engine","choices":[{"index":0,"delta":{"content":"x"},"z":%b}]}\n\n',
    "completions": b'data: {"choices":[{"index":0,"text":"x","z":%b}],"model":"engine"}\n\n',
    "messages": b'event: message_start\ndata: {"type":"message_start","message":{"z":%b,"model":"engine"}}\n\n',
    "responses": b'event: response.created\ndata: {"type":"response.created","response":{"z":%b,"model":"engine"}}\n\n',
    "ollama_chat": b'{"model":"engine","message":{"role":"assistant","content":"a","z":%b},"done":false}\n',
    "ollama_generate": b'{"z":%b,"model":"engine","response":"a","done":false}\n',
}


@pytest.mark.parametrize("odd", [b"NaN", b"[-Infinity]", b'"\\ud83d"', b'{"\\udc00":"}\\udc00"}', b"1e999", b"9" * 40])
@pytest.mark.parametrize("surface", _WHOLE)
def test_whole_answers_and_events_bear_it(surface: str, odd: bytes) -> None:
    whole = _WHOLE[surface] % odd
    answer = FORMATS[surface].read(whole, "alias")
    assert answer is not None
    assert answer.body == whole.replace(b'"engine"', b'"alias"')
    view = FORMATS[surface].view(_CHAT, "alias", True)
    event = _EVENTS[surface] % odd
    for _ in range(3):
        assert view.see(event).forward == event.replace(b'"engine"', b'"alias"')


@pytest.mark.parametrize("surface", _WHOLE)
def test_what_is_no_answer_is_none_with_such_values_too(surface: str) -> None:
    assert FORMATS[surface].read(b'{"model":"engine","x":NaN}', "alias") is None
    assert FORMATS[surface].read(b'{"model":"engine","x":NaN,', "alias") is None
