from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import StreamBroken
from gateway.wire.anthropic.assemble import MessageAssembler
from gateway.wire.sse import Framer
from tests.recordings import FOLDER, recording
from tests.wire.anthropic.checked import message

PAIRS = FOLDER / "anthropic" / "pairs"
NAMES = sorted(path.stem for path in PAIRS.glob("*.json"))


def assembled(body: bytes) -> MessageAssembler:
    assembler = MessageAssembler()
    for event in Framer().feed(body):
        assembler.feed(event)
    return assembler


def comparable(body: bytes) -> list[tuple[str, Any]]:
    """Members in their order; ids differ between two runs, and so does how much of the prompt was cached."""
    answer = json.loads(body)
    answer["id"] = len(answer["id"])
    usage = answer["usage"]
    usage["input_tokens"] += usage.pop("cache_read_input_tokens", 0)
    return list(answer.items())


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_message_that_the_engine_itself_gives(name: str) -> None:
    made = assembled((PAIRS / f"{name}.sse").read_bytes()).result()
    assert comparable(made) == comparable((PAIRS / f"{name}.json").read_bytes())


def test_thinking_text_and_tools() -> None:
    assembler = assembled(recording("anthropic", "documented_tools_stream").body)
    made = assembler.result()
    told = message(made)
    assert [block.type for block in told.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert told.content[0].signature == "RXhhbXBsZQ=="
    assert told.content[1].text == 'Ich prüfe "beides" – 你好 👋'
    assert b'"input":{"room": "kitchen", "unit": "C"}' in made
    assert told.content[3].input == {}
    assert (told.usage.output_tokens, told.usage.service_tier) == (89, "standard")
    assert assembler.finish_reason == "tool_calls"
    assert assembler.usage is not None
    assert assembler.usage.prompt_tokens == 1512


def test_input_that_was_cut_off_is_left_out() -> None:
    body = recording("anthropic", "documented_tools_stream").body.replace(b'"partial_json":"}"', b'"partial_json":""')
    with pytest.raises(StreamBroken):
        assembled(body).result()
    told = message(assembled(body.replace(b'"stop_reason":"tool_use"', b'"stop_reason":"max_tokens"')).result())
    assert [block.type for block in told.content] == ["thinking", "text", "tool_use"]
    assert told.content[2].input == {}


def test_citations_are_kept() -> None:
    cited = b'{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}'
    body = recording("anthropic", "llama_cpp_stream").body.replace(b'{"type":"text_delta","text":":"}', cited)
    block = json.loads(assembled(body).result())["content"][0]
    assert block == {
        "type": "text",
        "text": "Chatbot Hello",
        "citations": [{"type": "char_location", "cited_text": "x"}],
    }


def test_s2_a_cut_is_no_answer() -> None:
    body = recording("anthropic", "llama_cpp_stream").body
    for end in range(0, body.index(b"event: message_stop"), 40):
        with pytest.raises(StreamBroken):
            assembled(body[:end]).result()


@pytest.mark.parametrize(
    "event",
    [
        b"data: {\n\n",
        b"data: []\n\n",
        b'data: {"type":"message_start"}\n\n',
        b'data: {"type":"message_start","message":5}\n\n',
        b'data: {"type":"content_block_start","index":0}\n\n',
        b'data: {"type":"content_block_start","index":{},"content_block":{}}\n\n',
        b'data: {"type":"content_block_delta","index":4,"delta":{}}\n\n',
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}\n\n',
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}\n\n',
        b'data: {"type":"message_delta","usage":5}\n\n',
        b'data: {"type":"message_delta","delta":5}\n\n',
    ],
)
def test_what_is_no_event(event: bytes) -> None:
    assembler = MessageAssembler()
    assembler.feed(b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n')
    with pytest.raises(StreamBroken):
        assembler.feed(event)
