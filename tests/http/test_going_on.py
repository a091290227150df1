"""An answer that breaks off goes on in another engine where it may, and ends in an error where it may not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.sim.fault import Fault
from gateway.sim.profile import engine_profile
from gateway.sim.serve import start_emulated
from tests.relay.fake_engine import ROLE, Request, Script, Wire, raw, sse, token
from tests.shell.engine_double import llama_cpp, page, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import Running, backend, chat, config, events, text_of

ON = "models: [{name: tiny, serves: tiny, continuation: true}]"
SECOND = {"device": "dgx-spark"}
"""Slower, so that the other one is asked first."""
BROKEN = sse(ROLE, token("The sea"), token(" is "), end=False, then="reset")


class InTurn:
    """Scripts for whichever engine is asked next; `asked`: what it was asked, in order."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.asked: list[Request] = []

    async def __call__(self, request: Request, wire: Wire) -> None:
        self.asked.append(request)
        await self.scripts[min(len(self.asked), len(self.scripts)) - 1](request, wire)

    def body(self, index: int) -> Any:
        return json.loads(self.asked[index].body)


async def among(start: Start, *scripts: Script, rest: str = ON, count: int = 2) -> tuple[Running, InTurn]:
    """A gateway among engines that play these in turn."""
    turns = InTurn(*scripts)
    return await start({f"b{n}": vllm(turns) for n in range(count)}, rest=rest), turns


async def test_the_rest_comes_from_another_engine_as_one_answer(start: Start) -> None:
    gateway, turns = await among(start, BROKEN, says(" ", "wide", " and", " blue", prompt=22))
    reply = await gateway.chat(stream=True, max_tokens=50, stream_options={"include_usage": True})
    assert reply.status == 200
    assert text_of(reply.body) == "The sea is wide and blue"
    found = events(reply.body)
    assert found[-1] == "[DONE]"
    chunks = [event for event in found if isinstance(event, dict)]
    assert {chunk["id"] for chunk in chunks} == {"c"}
    assert sum("role" in choice["delta"] for chunk in chunks for choice in chunk["choices"]) == 1
    assert chunks[-1]["usage"] == {
        "prompt_tokens": 20,
        "completion_tokens": 6,
        "total_tokens": 26,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert [chunk["kvgate"] for chunk in chunks if "kvgate" in chunk] == [{"continued": 1}]
    asked = turns.body(1)
    assert asked["messages"][-1] == {"role": "assistant", "content": "The sea is"}
    assert (asked["continue_final_message"], asked["add_generation_prompt"]) == (True, False)
    assert asked["max_tokens"] == 48
    assert sum([await gateway.value(f'kvgate_resumed_total{{backend="b{n}"}}') for n in range(2)]) == 1


async def test_white_space_that_a_template_cuts_off_is_said_once(start: Start) -> None:
    first = sse(ROLE, token("One.\n"), token("\n"), end=False, then="reset")
    gateway, turns = await among(start, first, says("\n", "\nTwo."))
    reply = await gateway.chat(stream=True)
    assert text_of(reply.body) == "One.\n\nTwo."
    assert turns.body(1)["messages"][-1]["content"] == "One."


async def test_what_does_not_go_on_there_ends_in_an_error(start: Start) -> None:
    gateway, _ = await among(start, sse(ROLE, token("One. "), end=False, then="reset"), says("two"))
    reply = await gateway.chat(stream=True)
    assert text_of(reply.body) == "One. "
    assert "did not go on" in events(reply.body)[-1]["error"]["message"]
    assert "[DONE]" not in events(reply.body)


REASONING = b'data: {"id":"c","choices":[{"index":0,"delta":{"reasoning":"Hm"},"finish_reason":null}]}\n\n'
CALL = (
    b'data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","type":"function",'
    b'"function":{"name":"f","arguments":""}}]},"finish_reason":null}]}\n\n'
)


@pytest.mark.parametrize("part", [REASONING, CALL], ids=["a thought", "a call"])
async def test_what_only_its_engine_knows_does_not_go_on(start: Start, part: bytes) -> None:
    gateway, turns = await among(start, sse(ROLE, token("a"), part, token("b"), end=False, then="reset"), says("no"))
    reply = await gateway.chat(stream=True)
    assert events(reply.body)[-1]["error"]["code"] == "upstream_stream_broken"
    assert len(turns.asked) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"n": 2},
        {"logprobs": True},
        {"response_format": {"type": "json_object"}},
        {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "The"}]},
    ],
    ids=["two choices", "logprobs", "json", "a message left open"],
)
async def test_requests_whose_answers_never_go_on(start: Start, more: dict[str, Any]) -> None:
    gateway, turns = await among(start, BROKEN, says("no"))
    reply = await gateway.chat(stream=True, **more)
    assert "error" in events(reply.body)[-1]
    assert len(turns.asked) == 1


async def test_it_is_off_unless_the_model_says_so_and_a_client_may_say_no(start: Start) -> None:
    silent, one = await among(start, BROKEN, says("no"), rest="")
    assert "error" in events((await silent.chat(stream=True)).body)[-1]
    asked, two = await among(start, BROKEN, says("no"))
    reply = await asked.ask(chat(stream=True), **{"x-allow-continuation": "no"})
    assert "error" in events(reply.body)[-1]
    assert len(one.asked) == 1
    assert len(two.asked) == 1
    odd = await asked.ask(chat(stream=True), **{"x-allow-continuation": "perhaps"})
    assert (odd.status, odd.error["param"]) == (400, "x-allow-continuation")


async def test_other_number_formats_are_not_the_same_text(start: Start) -> None:
    weights = "{id: tiny, weights: fp8}"
    turns = InTurn(BROKEN, says("no"))
    of = {"b1": {"models": "[{id: tiny, weights: bf16}]"}, "b2": {"models": f"[{weights}]"}}
    gateway = await start({"b1": vllm(turns), "b2": vllm(turns)}, rest=ON, **of)
    assert "error" in events((await gateway.chat(stream=True)).body)[-1]
    assert len(turns.asked) == 1


async def test_labelled_data_goes_on_only_where_it_may(start: Start) -> None:
    rest = "models: [{name: tiny, serves: tiny, data: confidential, continuation: true}]"
    engines = {"b1": vllm(BROKEN), "b2": vllm(says("no"))}
    gateway = await start(engines, rest=rest, b2={"clearance": "public"})
    reply = await gateway.chat(stream=True)
    assert "error" in events(reply.body)[-1]
    assert not engines["b2"].asked


async def test_when_all_break_off_the_client_is_told_once_and_cut(start: Start) -> None:
    gateway, turns = await among(start, sse(ROLE, token("a"), end=False, then="reset"), count=4)
    client = await gateway.begin_chat(stream=True)
    reply = await client.reply()
    assert text_of(reply.body) == "aaa"  # twice it went on
    assert [event["error"]["code"] for event in events(reply.body) if "error" in event] == ["upstream_stream_broken"]
    assert len(turns.asked) == 3


async def test_an_engine_that_refuses_the_rest_is_followed_by_another(start: Start) -> None:
    busy = raw(b"HTTP/1.1 503 X\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
    gateway, _ = await among(start, BROKEN, busy, says(" ", "wide"), count=3)
    reply = await gateway.chat(stream=True)
    assert text_of(reply.body) == "The sea is wide"


@pytest.mark.parametrize("leaves", [False, True])
async def test_the_rest_waits_for_room(start: Start, leaves: bool) -> None:
    free, cut = asyncio.Event(), asyncio.Event()

    async def breaks(request: Request, wire: Wire) -> None:
        await sse(ROLE, token("The sea"), end=False)(request, wire)
        await cut.wait()
        wire.reset()

    engines = {"b1": vllm(breaks), "b2": vllm(says("held", "on", until=free), says(" is"))}
    gateway = await start(
        engines, rest=ON + "\nqueue: {aging: 100ms}", b1={"running": "1"}, b2=SECOND | {"running": "1"}
    )
    client = await gateway.begin_chat(stream=True)
    await engines["b1"].asked_for(1)
    held = await gateway.begin_chat("other", stream=True)
    await engines["b2"].asked_for(1)
    cut.set()
    await gateway.until(lambda: sum(gateway.app.dispatcher.waiting().values()) == 1)
    if leaves:
        client.close()
        await gateway.until(lambda: not gateway.app.dispatcher.waiting())
    free.set()
    assert text_of((await held.reply()).body) == "heldon"
    if not leaves:
        assert text_of((await client.reply()).body) == "The sea is"


async def test_a_translated_client_sees_one_message(start: Start) -> None:
    first = sse(ROLE, token("The sea"), token(" is"), end=False, then="reset")
    turns = InTurn(first, says(" wide"))
    engines = {name: llama_cpp(turns, model="tiny") for name in ("b1", "b2")}
    for engine in engines.values():
        engine.pages["/v1/messages"] = page({"error": {"message": "not found", "code": 404}}, 404)
        engine.pages["/v1/messages/count_tokens"] = page({"error": {"message": "not found", "code": 404}}, 404)
    gateway = await start(engines, rest=ON)
    body = {"model": "tiny", "max_tokens": 50, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    reply = await gateway.ask(body, "/v1/messages")
    found = events(reply.body)
    text = "".join(event["delta"].get("text", "") for event in found if event["type"] == "content_block_delta")
    assert text == "The sea is wide"
    assert [event["type"] for event in found].count("message_start") == 1
    assert found[-1]["type"] == "message_stop"


async def test_pieces_are_given_as_tokens_where_the_engine_takes_them(start: Start) -> None:
    turns = InTurn(
        sse(ROLE, token("Lig"), token("er"), token("\n"), end=False, then="reset"), says("2.", " Two", prompt=6)
    )
    engines = {name: llama_cpp(turns, model="tiny") for name in ("b1", "b2")}
    for engine in engines.values():
        engine.pages |= {"/apply-template": page({"prompt": "<user>hi"}), "/tokenize": page({"tokens": [7, 8, 9]})}
    gateway = await start(engines, rest=ON)
    reply = await gateway.chat(stream=True, max_tokens=30, stream_options={"include_usage": True})
    assert text_of(reply.body) == "Liger\n2. Two"
    found = events(reply.body)
    assert {event.get("object") for event in found[:-1]} == {None}, "as in the stream that began the answer"
    assert (found[-2]["usage"]["prompt_tokens"], found[-2]["usage"]["completion_tokens"]) == (3, 5)
    assert turns.asked[1].line.startswith("POST /v1/completions ")
    body = turns.body(1)
    assert body["prompt"] == [7, 8, 9, "Lig", "er", "\n"]
    assert body["max_tokens"] == 27
    assert "messages" not in body


@pytest.mark.parametrize("cut", [1, 2, 7, 30])
@pytest.mark.parametrize("surface", ["chat", "completions"])
async def test_emulated_engines_go_on_by_token_ids(start: Start, cut: int, surface: str) -> None:
    profile = engine_profile("rtx-pro-6000")
    async with (
        start_emulated(profile, model="tiny", speed=50, answer_tokens=40) as first,
        start_emulated(profile, model="tiny", speed=50, answer_tokens=40) as other,
    ):
        lines = [backend("b1", first.url), backend("b2", other.url, device="dgx-spark")]
        gateway = await start({}, text=config(*lines, rest=ON), up=False)
        await gateway.up("b1", "b2")
        path = f"/v1/{'chat/' if surface == 'chat' else ''}completions"
        body: dict[str, Any] = {"model": "tiny", "stream": True, "max_tokens": 64}
        body |= (
            {"messages": [{"role": "user", "content": "hello"}]} if surface == "chat" else {"prompt": "<|assistant|>"}
        )
        due = await gateway.ask(body, path)
        await first.break_down(Fault(cut_after_tokens=cut))
        broken = await gateway.ask(body, path)
    assert due.headers["x-kvgate-backend"] == broken.headers["x-kvgate-backend"] == "b1"
    assert len(text_of(due.body)) == 160
    assert text_of(broken.body) == text_of(due.body)
    assert events(broken.body)[-1] == "[DONE]"
    assert any(event.get("kvgate") == {"continued": 1} for event in events(broken.body)[:-1])
    assert b'token_ids":[' not in broken.body
