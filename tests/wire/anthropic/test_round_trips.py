"""There and back: what one direction writes, the other reads as what it was."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.anthropic import answer_from_chat, answer_to_chat
from gateway.wire.anthropic.assemble import MessageAssembler
from gateway.wire.anthropic.request_from_chat import from_chat
from gateway.wire.anthropic.request_to_chat import Asked, to_chat
from gateway.wire.anthropic.stream_from_chat import MessageWriter
from gateway.wire.anthropic.stream_to_chat import ChatWriter
from gateway.wire.assemble import Assembler
from gateway.wire.chat_wanted import Wanted
from gateway.wire.translation import Stamp
from tests.wire.anthropic.checked import data, events, frames, messages_request

STAMP = Stamp("abc123", 1_764_000_000, "alias", stream=True)
WORDS = st.text(alphabet='ab é你👋"\\/\n', min_size=1, max_size=10).filter(str.strip)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(WORDS, inner, max_size=2)),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(WORDS, VALUES, max_size=3).map(json.dumps)
CALLS = st.lists(ARGUMENTS, max_size=3).map(
    lambda all_arguments: [
        {"id": f"c{number}", "type": "function", "function": {"name": "run", "arguments": arguments}}
        for number, arguments in enumerate(all_arguments)
    ]
)


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """A chat answer with its figures."""
    calls = draw(CALLS)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": draw(WORDS if not calls else st.one_of(st.none(), WORDS)),
    }
    if draw(st.booleans()):
        message["reasoning_content"] = draw(WORDS)
    if calls:
        message["tool_calls"] = calls
    cached = draw(st.integers(0, 50))
    usage = {
        "prompt_tokens": cached + draw(st.integers(1, 50)),
        "completion_tokens": draw(st.integers(0, 50)),
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    finish = draw(st.sampled_from(["tool_calls" if calls else "stop", "length"]))
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-abc123",
        "object": "chat.completion",
        "created": STAMP.created,
        "model": "alias",
        "choices": [choice],
        "usage": usage,
    }


@given(answers())
def test_a_chat_answer_as_a_message_and_back(answer: dict[str, Any]) -> None:
    message = answer_from_chat.answer(json.dumps(answer).encode(), Asked(), STAMP)
    assert json.loads(answer_to_chat.answer(message, Wanted(), STAMP)) == answer


def chunks_of(answer: dict[str, Any], size: int) -> list[bytes]:
    """The answer as a stream, its texts in pieces of `size` characters."""
    message = answer["choices"][0]["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for member in ("reasoning_content", "content"):
        text = message.get(member) or ""
        deltas += [{member: text[at : at + size]} for at in range(0, len(text), size)]
    for index, call in enumerate(message.get("tool_calls", [])):
        head = {"index": index, "id": call["id"], "type": "function", "function": {"name": "run", "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        text = call["function"]["arguments"]
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces]
    finish = answer["choices"][0]["finish_reason"]
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": finish}])
    told = [{"choices": one} for one in choices] + [{"choices": [], "usage": answer["usage"]}]
    return [json.dumps(one).encode() for one in told]


@given(answers(), st.integers(1, 5))
def test_a_stream_as_a_message_and_back_and_put_together(answer: dict[str, Any], size: int) -> None:
    writer, back = MessageWriter(Asked(), STAMP), ChatWriter(Wanted(include_usage=True), STAMP)
    streamed = b"".join(writer.feed(one) for one in chunks_of(answer, size)) + writer.end()
    assert events(streamed)[-1].type == "message_stop"
    chat = Assembler("chat")
    for event in frames(b"".join(back.feed(one) for one in data(streamed)) + back.end()):
        chat.feed(event)
    told = json.loads(chat.result())
    wanted = dict(answer["choices"][0]["message"])
    wanted["content"] = wanted["content"] or ""
    assert told["choices"][0]["message"] == wanted
    assert told["choices"][0]["finish_reason"] == answer["choices"][0]["finish_reason"]
    assert told["usage"] == answer["usage"]
    whole = MessageAssembler()
    for event in frames(streamed):
        whole.feed(event)
    assert whole.result() == answer_from_chat.answer(json.dumps(answer).encode(), Asked(), STAMP)


TURN = st.tuples(WORDS, CALLS, WORDS)


@given(st.lists(TURN, max_size=3), st.one_of(st.none(), WORDS))
def test_a_chat_request_as_messages_and_back(turns: list[Any], system: str | None) -> None:
    messages: list[dict[str, Any]] = [] if system is None else [{"role": "system", "content": system}]
    messages.append({"role": "user", "content": "hello"})
    for words, calls, reply in turns:
        messages.append({"role": "assistant", "content": words, **({"tool_calls": calls} if calls else {})})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in calls]
        messages.append({"role": "user", "content": reply})
    tools = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object", "b": 1, "a": 2}}}]
    body = {"model": "m", "max_tokens": 7, "tools": tools, "messages": messages, "stream": False}
    there = from_chat(json.dumps(body).encode())
    messages_request(there.body)
    assert json.loads(to_chat(there.body).body) == body
