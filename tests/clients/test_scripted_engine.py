"""The scripted engine is held to what real engines send and to the types of the official SDKs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from gateway.wire.chat_stream import ChatStream
from gateway.wire.sse import Framer
from gateway.wire.stream_view import EventKind
from tests.clients.answers import events_of, said
from tests.clients.engine.script import CONTENT, DONE, FILE, NOTES
from tests.clients.scripted_engine import FLAVOURS, MODEL, ScriptedEngine
from tests.recordings import recording

FUNCTIONS = [
    {
        "name": "write_file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
    },
    {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
]
ASKED: dict[str, dict[str, Any]] = {
    "chat": {
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [{"type": "function", "function": function} for function in FUNCTIONS],
        "stream_options": {"include_usage": True},
    },
    "completions": {"prompt": "Go."},
    "responses": {"input": "Go.", "tools": [{"type": "function", **function} for function in FUNCTIONS]},
    "messages": {
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [{"name": function["name"], "input_schema": function["parameters"]} for function in FUNCTIONS],
    },
    "ollama_chat": {
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [{"type": "function", "function": function} for function in FUNCTIONS],
    },
    "ollama_generate": {"prompt": "Go."},
}
PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "ollama_chat": "/api/chat",
    "ollama_generate": "/api/generate",
}


async def _ask(surface: str, stream: bool) -> bytes:
    flavour = next(name for name, surfaces in FLAVOURS.items() if surface in surfaces)
    body = {"model": MODEL, "stream": stream, **ASKED[surface]}
    async with ScriptedEngine(flavour) as engine, aiohttp.ClientSession() as http:
        async with http.post(engine.url + PATHS[surface], json=body) as reply:
            assert reply.status == 200, await reply.text()
            answer = await reply.read()
        assert engine.surfaces == [surface]
        assert not engine.refused
    return answer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("surface", ASKED)
async def test_answers_are_of_the_sdks_types(surface: str, stream: bool) -> None:
    answer = said(surface, await _ask(surface, stream), stream=stream)
    if "tools" in ASKED[surface]:
        assert answer.calls == [("write_file", {"path": FILE, "content": CONTENT + "\n"})]
        assert answer.thought
        assert answer.usage == (1200, 48)
    else:
        assert answer.text == DONE


@pytest.mark.parametrize("surface", ["chat", "completions"])
async def test_streams_are_read_as_an_engines(surface: str) -> None:
    stream = ChatStream(surface)
    kinds = [stream.see(event).kind for event in Framer().feed(await _ask(surface, stream=True))]
    assert stream.terminal
    assert stream.finish_reason == ("tool_calls" if surface == "chat" else "stop")
    assert kinds[-1] is EventKind.DONE
    assert EventKind.OTHER not in kinds
    if surface == "chat":
        assert stream.usage is not None
        assert (stream.usage.prompt_tokens, stream.usage.cached_tokens) == (1200, 1024)


def _paths(value: Any, at: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield f"{at}.{key}"
            yield from _paths(member, f"{at}.{key}")
    elif isinstance(value, list):
        for member in value:
            yield from _paths(member, f"{at}[]")


async def test_chunks_have_no_member_that_real_engines_do_not_send() -> None:
    recorded: set[str] = set()
    for engine, name in (
        ("vllm", "chat_stream_usage"),
        ("vllm", "chat_tools_named_stream"),
        ("llama.cpp", "reasoning_content_stream"),
    ):
        for event in events_of("chat", recording(engine, name).body):
            recorded |= set(_paths(event))
    ours = {path for event in events_of("chat", await _ask("chat", stream=True)) for path in _paths(event)}
    # The recorded call was cut by its token limit before its arguments began; the SDK's types say how they come.
    assert ours - recorded == {".choices[].delta.tool_calls[].function.arguments"}


async def test_the_task_takes_three_rounds_and_no_state() -> None:
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    body = {"model": MODEL, "messages": messages, "tools": ASKED["chat"]["tools"]}
    called = []
    async with ScriptedEngine("openai") as engine, aiohttp.ClientSession() as http:
        for _ in range(3):
            async with http.post(engine.url + PATHS["chat"], json=body) as reply:
                message = (await reply.json())["choices"][0]["message"]
            messages.append(message)
            for call in message.get("tool_calls", ()):
                called.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": "fine"})
        assert [asked.turn.rounds for asked in engine.asked] == [0, 1, 2]
        assert not any(asked.complaints or asked.turn.open_calls for asked in engine.asked)
    assert called == [
        ("write_file", {"path": FILE, "content": CONTENT + "\n"}),
        ("read_file", {"path": FILE}),
        ("write_file", {"path": NOTES, "content": "read\n"}),
    ]
    assert message["content"] == DONE


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([{"role": "user", "content": "a"}, {"role": "system", "content": "b"}], "a system message after"),
        ([{"role": "tool", "tool_call_id": "c", "content": "b"}], "that nobody made"),
        ([{"role": "user", "content": [{"type": "tool_result"}]}], "a content part of type tool_result"),
    ],
)
async def test_what_a_template_would_refuse_is_noted(messages: list[Any], complaint: str) -> None:
    async with ScriptedEngine("openai") as engine, aiohttp.ClientSession() as http:
        async with http.post(engine.url + PATHS["chat"], json={"model": MODEL, "messages": messages}) as reply:
            assert reply.status == 200
        assert complaint in "".join(engine.asked[0].complaints)


async def test_what_it_does_not_speak_is_not_found() -> None:
    async with ScriptedEngine("openai") as engine, aiohttp.ClientSession() as http:
        async with http.post(engine.url + "/v1/messages", json={"model": MODEL}) as reply:
            assert reply.status == 404
        async with http.post(engine.url + PATHS["chat"], data=b"{") as reply:
            assert reply.status == 400
        async with http.post(engine.url + PATHS["chat"], json={"model": "other", "messages": []}) as reply:
            assert reply.status == 404
        assert engine.refused == ["POST /v1/messages", "chat: model other"]
