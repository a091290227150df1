"""Whatever comes: a request is translated or refused by name, an answer is translated or breaks the stream."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import MalformedRequest, StreamBroken
from gateway.wire.chat_request import parse_chat
from gateway.wire.ollama import answer_from_chat, answer_to_chat, embeddings, generate_to_chat
from gateway.wire.ollama.asked import Asked
from gateway.wire.ollama.assemble import OllamaAssembler
from gateway.wire.ollama.edits import edits
from gateway.wire.ollama.generate_to_completions import to_completions
from gateway.wire.ollama.lines import LineFramer
from gateway.wire.ollama.load import load_answer, load_request
from gateway.wire.ollama.request_from_chat import from_chat
from gateway.wire.ollama.request_to_chat import to_chat
from gateway.wire.ollama.stream import OllamaStream
from gateway.wire.ollama.stream_from_chat import OllamaWriter
from gateway.wire.ollama.stream_to_chat import ChatWriter
from gateway.wire.ollama.whole import read_answer
from gateway.wire.splice import splice
from gateway.wire.sse import Framer, data_of
from tests.recordings import FOLDER, pairs
from tests.wire import json_text
from tests.wire.ollama.samples import FILES, STAMP, WHOLE_STREAMS, cuts, framed, lines_data, objects, written

Read = TypeVar("Read")
KEYS = [
    "model",
    "messages",
    "role",
    "content",
    "thinking",
    "images",
    "tool_calls",
    "tool_name",
    "tool_call_id",
    "function",
    "name",
    "arguments",
    "id",
    "index",
    "options",
    "num_predict",
    "stop",
    "seed",
    "temperature",
    "top_k",
    "format",
    "think",
    "tools",
    "type",
    "prompt",
    "system",
    "raw",
    "suffix",
    "input",
    "dimensions",
    "stream",
    "logprobs",
    "top_logprobs",
    "response_format",
    "json_schema",
    "schema",
    "choices",
    "message",
    "delta",
    "text",
    "finish_reason",
    "usage",
    "prompt_tokens",
    "timings",
    "prompt_ms",
    "response",
    "done",
    "done_reason",
    "error",
    "prompt_eval_count",
    "eval_duration",
    "embeddings",
    "embedding",
    "data",
    "bytes",
    "token",
    "logprob",
    "reasoning_content",
    "image_url",
    "url",
    "stream_options",
    "include_usage",
    "keep_alive",
]
words = st.sampled_from(
    ["user", "assistant", "tool", "text", "image_url", "iVBORw0KGgo=", "json", "{}", "", "\ud83d", "a"]
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), words)
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=6), st.just({})
    ),
    max_leaves=25,
)
objects_of_any_kind = st.dictionaries(st.sampled_from(KEYS), trees, max_size=8)
bodies = st.one_of(
    objects_of_any_kind.map(lambda value: json.dumps(value).encode()),
    objects_of_any_kind.map(lambda value: json.dumps({"model": "m", **value}).encode()),
    trees.map(lambda value: json.dumps({"model": "m", "messages": [{"role": "user", "content": value}]}).encode()),
    json_text.values,
    st.binary(max_size=40),
)
ANSWERS: list[dict[str, Any]] = [
    {"choices": [{"index": 0, "message": {"content": "x"}, "delta": {"content": "x"}, "finish_reason": "stop"}]},
    {"model": "m", "message": {"role": "assistant", "content": "x"}, "done": True},
    {"model": "m", "response": "x", "done": True},
    {"data": [{"index": 0, "embedding": [1, 2]}], "embeddings": [[1]]},
]
REQUESTS: list[dict[str, Any]] = [
    {
        "model": "m",
        "messages": [
            {"role": "user", "content": "x", "images": ["iVBORw0KGgo="]},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
            {"role": "tool", "content": "1", "tool_name": "f"},
        ],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "options": {"stop": ["x"], "num_predict": 4},
        "prompt": "x",
        "input": ["x"],
        "format": {"type": "object"},
    },
    {
        "model": "m",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}],
            },
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]},
        ],
        "response_format": {"type": "json_schema", "json_schema": {"schema": {}}},
        "stream_options": {"include_usage": True},
        "input": "x",
    },
]


@st.composite
def changed(draw: st.DrawFn, bases: list[dict[str, Any]]) -> bytes:
    """One of these with one value anywhere replaced by anything."""
    tree = json.loads(json.dumps(draw(st.sampled_from(bases))))
    spots: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in items:
            spots.append((node, key))
            walk(value)

    walk(tree)
    node, key = draw(st.sampled_from(spots))
    node[key] = draw(trees)
    return json.dumps(tree).encode()


@settings(max_examples=300, deadline=None)
@given(st.one_of(bodies, changed(REQUESTS)))
def test_requests(body: bytes) -> None:
    for translate in (
        to_chat,
        generate_to_chat.to_chat,
        to_completions,
        from_chat,
        embeddings.to_openai,
        embeddings.from_openai,
    ):
        translated = translated_or_refused(translate, body)
        if isinstance(translated, MalformedRequest):
            assert translated.param is not None or not is_object(body)
            continue
        json.loads(translated.body)
        if translate in (to_chat, generate_to_chat.to_chat):
            parsed = translated_or_refused(parse_chat, translated.body)
            assert not isinstance(parsed, MalformedRequest) or "surrogate" in parsed.message
    if load_request(body):
        json.loads(load_answer(body, "ollama_chat", STAMP))
    try:
        spliced = splice(body, edits(body, "n", True, 5))
    except MalformedRequest:
        return
    assert json.loads(spliced)["options"]["num_predict"] == 5


def translated_or_refused(translate: Callable[[bytes], Read], body: bytes) -> Read | MalformedRequest:
    try:
        return translate(body)
    except MalformedRequest as refused:
        return refused


def is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False


@settings(max_examples=300, deadline=None)
@given(st.one_of(bodies, changed(ANSWERS)))
def test_answers(body: bytes) -> None:
    written_by: list[Callable[[], bytes]] = [
        lambda: answer_from_chat.answer(body, Asked(), STAMP),
        lambda: answer_from_chat.answer(body, Asked(generate=True), STAMP),
        lambda: answer_to_chat.answer(body, None, STAMP),
        lambda: embeddings.ollama_answer(body, None, STAMP),
        lambda: embeddings.openai_answer(body, embeddings.Embedding(base64=True), STAMP),
        lambda: _assembled(body),
    ]
    for write in written_by:
        try:
            json.loads(write())
        except StreamBroken:
            continue
    for writer in (OllamaWriter(Asked(), STAMP), OllamaWriter(Asked(generate=True), STAMP)):
        try:
            objects(writer.feed(body) + writer.end())
        except StreamBroken:
            continue
    back = ChatWriter(None, STAMP)
    with contextlib.suppress(StreamBroken):
        for event in Framer().feed(back.feed(body) + back.end())[:-1]:
            json.loads(data_of(event) or b"")
    read_answer(body, "lake")
    stream = OllamaStream("lake")
    stream.see(body + b"\n")
    stream.unfinished(body)


def _assembled(body: bytes) -> bytes:
    assembler = OllamaAssembler()
    assembler.feed(body)
    return assembler.result()


@pytest.mark.parametrize("name", [name for name in pairs() if "completions" not in name and "n2" not in name])
def test_a_translated_stream_does_not_depend_on_how_it_was_cut(name: str) -> None:
    body = (FOLDER / "llama.cpp" / "pairs" / f"{name}.sse").read_bytes()
    expected = written(body)
    events = Framer().feed(body)
    for parts in cuts(body)[:: max(1, len(body) // 40)]:
        framer = Framer()
        assert [event for part in parts for event in framer.feed(part)] == events
    native = framed([expected])
    for parts in cuts(expected)[:: max(1, len(expected) // 200)]:
        framer = LineFramer()
        assert [line for part in parts for line in framer.feed(part)] == native


@pytest.mark.parametrize("name", [name for name in WHOLE_STREAMS if name.startswith("chat")])
def test_chat_and_back_again_says_the_same(name: str) -> None:
    chunks = _chat(FILES[name])
    again = written(chunks)
    assert _chat(again) == chunks


def _chat(lines: bytes) -> bytes:
    writer = ChatWriter(None, STAMP)
    return b"".join(writer.feed(data) for data in lines_data(lines)) + writer.end()


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
arguments = st.dictionaries(texts, st.one_of(texts, st.integers(-(2**53), 2**53), st.booleans()), max_size=3)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("user"), texts),
            st.tuples(st.just("assistant"), texts),
            st.tuples(st.just("assistant"), st.lists(st.tuples(texts.filter(bool), arguments), min_size=1, max_size=3)),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_a_conversation_there_and_back(turns: list[tuple[str, Any]]) -> None:
    messages: list[dict[str, Any]] = []
    for role, said in turns:
        if isinstance(said, str):
            messages.append({"role": role, "content": said})
            continue
        calls = [
            {"id": f"c{len(messages)}_{n}", "function": {"index": n, "name": name, "arguments": given}}
            for n, (name, given) in enumerate(said)
        ]
        messages.append({"role": role, "content": "", "tool_calls": calls})
        messages += [
            {
                "role": "tool",
                "content": "ok",
                "tool_name": call["function"]["name"],  # type: ignore[index]
                "tool_call_id": call["id"],
            }
            for call in calls
        ]
    body = json.dumps({"model": "m", "messages": messages, "stream": False}).encode()
    there = to_chat(body)
    back = from_chat(there.body)
    assert (there.lost, back.lost) == ((), ())
    assert json.loads(back.body) == json.loads(body)
