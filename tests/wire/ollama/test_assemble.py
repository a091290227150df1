from __future__ import annotations

import json

import pytest

from gateway.errors import StreamBroken
from gateway.wire.ollama.assemble import OllamaAssembler
from gateway.wire.ollama.whole import read_answer
from gateway.wire.usage import Usage
from tests.wire.ollama.samples import FILES, WHOLE_STREAMS, checked, framed, objects


def assembled(body: bytes) -> bytes:
    assembler = OllamaAssembler()
    for line in framed([body]):
        assembler.feed(line)
    return assembler.result()


@pytest.mark.parametrize("name", WHOLE_STREAMS)
def test_the_whole_answer_is_the_last_line_with_all_that_was_said(name: str) -> None:
    body = FILES[name]
    lines, whole = objects(body), json.loads(assembled(body))
    generate = name.startswith("generate")
    pieces = [line if generate else line.get("message", {}) for line in lines]
    said = whole if generate else whole["message"]
    assert said["response" if generate else "content"] == "".join(
        piece.get("response" if generate else "content", "") for piece in pieces
    )
    assert said.get("thinking", "") == "".join(piece.get("thinking", "") for piece in pieces)
    assert said.get("tool_calls", []) == [call for piece in pieces for call in piece.get("tool_calls", [])]
    assert whole.get("logprobs", []) == [each for line in lines for each in line.get("logprobs", [])]
    rest = {key: value for key, value in lines[-1].items() if key not in ("message", "response")}
    assert {key: whole[key] for key in rest} == rest
    checked(assembled(body), generate=generate)


def test_what_a_whole_answer_cost_and_why_it_ended() -> None:
    assembler = OllamaAssembler()
    for line in framed([FILES["chat_tools"]]):
        assert assembler.finish_reason is None
        assembler.feed(line)
    usage = Usage(177, 41, 8, 10.175903, 0.173639)
    assert (assembler.usage, assembler.finish_reason) == (usage, "tool_calls")
    read = read_answer(assembler.result(), "lake")
    assert read is not None
    assert (read.usage, read.finish_reason) == (usage, "tool_calls")
    assert json.loads(read.body) == {**json.loads(assembler.result()), "model": "lake"}
    untouched = read_answer(assembler.result(), None)
    assert untouched is not None
    assert untouched.body == assembler.result()


@pytest.mark.parametrize("name", WHOLE_STREAMS)
def test_s2_a_cut_is_no_answer(name: str) -> None:
    lines = framed([FILES[name]])
    with pytest.raises(StreamBroken):
        assembled(b"".join(lines[:-1]))


def test_s4_an_error_is_no_answer() -> None:
    with pytest.raises(StreamBroken):
        assembled(FILES["chat_error"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"<html>",
        b'{"error":"x"}',
        b'{"message":{"content":"a"},"done":false}',
        b'{"done":true}',
        b'{"message":"a","done":true}',
        b'{"response":"\xff","done":true}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer(body: bytes) -> None:
    assert read_answer(body, "lake") is None


def test_an_answer_that_names_no_model_does_not_come_to_name_one() -> None:
    read = read_answer(b'{"response":"a","done":true}', "lake")
    assert read is not None
    assert read.body == b'{"response":"a","done":true}'
    loose = read_answer(b'{"model":"x","response":"a","done":true,"score":NaN}', "lake")
    assert loose is not None  # as a client in Python reads it
    assert loose.body == b'{"model":"lake","response":"a","done":true,"score":NaN}'
