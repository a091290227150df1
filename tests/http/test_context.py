from __future__ import annotations

import asyncio
import json

import pytest

from gateway.core.snapshot import Health
from tests.recordings import recording
from tests.relay.fake_engine import Request, Wire, json_answer
from tests.shell.engine_double import llama_cpp, openai_compatible, page, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import Running

TOKENS = 5.4
"""Bytes a token of this prose with the vocabularies of today."""


def prose(tokens: int) -> str:
    return ("lorem ipsum dolor sit amet " * (int(tokens * TOKENS) // 27 + 1))[: int(tokens * TOKENS)]


async def test_c1_an_output_budget_over_the_window_is_lowered_not_refused(start: Start) -> None:
    engine = vllm(says("ok"), window=8192)
    gateway = await start({"b1": engine})
    reply = await gateway.chat(prose(6000), max_tokens=32_000)
    assert reply.status == 200
    sent = engine.body()["max_tokens"]
    assert 0 < sent <= 2192
    assert reply.headers["x-kvgate-max-tokens"] == str(sent)


async def test_c1_lowering_the_budget_can_be_switched_off(start: Start) -> None:
    engine = vllm(says("ok"), window=8192)
    gateway = await start({"b1": engine}, rest="models: [{name: m, serves: tiny, output: {fit: refuse}}]")
    reply = await gateway.chat(prose(6000), model="m", max_tokens=32_000)
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert engine.asked == []


SGLANG = "Token count exceeds the maximum context length of 2048 tokens. You requested a total of 9000 tokens."


@pytest.mark.parametrize(
    ("engine", "status", "body"),
    [
        ("vllm", 400, recording("vllm", "err_prompt_too_long").body),
        ("vllm", 400, recording("vllm", "err_max_tokens_too_big").body),
        ("llama.cpp", 400, recording("llama.cpp", "err_prompt_too_long").body),
        ("vllm", 400, {"object": "error", "message": SGLANG, "type": "BadRequestError", "code": 400}),
    ],
    ids=["vllm", "vllm budget", "llama.cpp", "sglang"],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_c2_every_engines_overflow_is_told_in_one_wording(
    start: Start, engine: str, status: int, body: object, stream: bool
) -> None:
    make = vllm if engine == "vllm" else llama_cpp
    gateway = await start({"b1": make(page(body, status), model="m")})
    reply = await gateway.chat(model="m", stream=stream)
    assert reply.status == 400
    assert reply.error["code"] == "context_length_exceeded"
    assert reply.error["type"] == "invalid_request_error"
    assert "maximum context length is" in reply.error["message"]


async def test_c2_what_the_gateway_itself_finds_too_long_is_told_in_the_same_wording(start: Start) -> None:
    engine = vllm(window=2048)
    gateway = await start({"b1": engine})
    reply = await gateway.chat(prose(9000))
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert "maximum context length is 2048 tokens" in reply.error["message"]
    assert reply.headers["x-should-retry"] == "false"
    assert engine.asked == []


async def test_c3_overflows_are_not_tried_again_and_blame_nobody(start: Start) -> None:
    overflow = page(recording("vllm", "err_prompt_too_long").body, 400)
    engine = vllm(overflow)
    gateway = await start({"b1": engine})
    for count in range(1, 11):
        assert (await gateway.chat()).status == 400
        assert len(engine.asked) == count
    assert gateway.health("b1") is Health.UP
    engine.now_plays(says("short"))
    assert (await gateway.chat()).status == 200


async def test_c3_an_overflow_gets_its_one_second_try_on_a_larger_window(start: Start) -> None:
    overflow = page(recording("vllm", "err_prompt_too_long").body, 400)
    engines = {"small": vllm(overflow, window=2048), "large": vllm(says("ok"), window=65_536)}
    gateway = await start(engines, large={"device": "dgx-spark"})
    reply = await gateway.chat()
    assert reply.status == 200
    assert reply.headers["x-kvgate-backend"] == "large"
    assert len(engines["small"].asked) == 1


class Strict:
    """An engine whose tokenizer nobody can ask: `prompt` tokens, whatever was sent, in a window of 4096."""

    def __init__(self, prompt: int, words: str) -> None:
        self.prompt, self.words = prompt, words
        self.budgets: list[int] = []

    async def __call__(self, request: Request, wire: Wire) -> None:
        budget = json.loads(request.body)["max_tokens"]
        self.budgets.append(budget)
        if self.prompt + budget <= 4096:
            await says("ok", prompt=self.prompt)(request, wire)
            return
        words = self.words.format(prompt=self.prompt, budget=budget)
        await json_answer({"error": {"message": words, "type": "invalid_request_error"}}, 400)(request, wire)


TGI = (
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: {prompt} `inputs` tokens and {budget} `max_new_tokens`"
)
OPENAI = (
    "This model's maximum context length is 4096 tokens. However, you requested 4200 tokens ({prompt} in the messages, "
    "{budget} in the completion). Please reduce the length of the messages or completion."
)
NO_NUMBER = "the request exceeds the model's maximum context length"


async def uncounted(start: Start, strict: Strict) -> Running:
    engine = openai_compatible(strict, model="tiny")
    return await start({"b1": engine}, b1={"models": "[{id: tiny, context: 4096}]"})


@pytest.mark.parametrize("words", [TGI, OPENAI], ids=["TGI", "OpenAI"])
async def test_c1_what_nobody_can_count_is_cut_from_the_best_guess_and_then_as_its_engine_counts(
    start: Start, words: str
) -> None:
    strict = Strict(3000, words)
    gateway = await uncounted(start, strict)
    reply = await gateway.chat(prose(2500), max_tokens=3000)
    assert reply.status == 200
    assert strict.budgets[0] > 1096
    assert strict.budgets[1:] == [1096]
    assert reply.headers["x-kvgate-max-tokens"] == "1096"


async def test_c1_a_budget_is_not_cut_to_next_to_nothing_since_the_estimate_is_unsure(start: Start) -> None:
    strict = Strict(1200, TGI)
    gateway = await uncounted(start, strict)
    reply = await gateway.chat("=-" * 3000, max_tokens=2000)
    assert reply.status == 200
    assert strict.budgets[-1] > 300, strict.budgets


async def test_c1_without_a_number_the_high_side_is_tried_once(start: Start) -> None:
    strict = Strict(2700, NO_NUMBER)
    gateway = await uncounted(start, strict)
    reply = await gateway.chat(prose(2500), max_tokens=3000)
    assert reply.status == 200, strict.budgets
    first, second = strict.budgets
    assert second < first


async def test_c1_a_prompt_that_does_not_fit_is_asked_for_once(start: Start) -> None:
    strict = Strict(4090, TGI)
    gateway = await uncounted(start, strict)
    reply = await gateway.chat(prose(2500), max_tokens=3000)
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert len(strict.budgets) == 1


async def test_c4_window_and_pool_are_both_kept(start: Start) -> None:
    free = asyncio.Event()
    engine = llama_cpp(says("a", "b", until=free, prompt=5000), slots=4, window=8192)
    gateway = await start({"b1": engine}, b1={"kv_pool": "8192 tokens"})
    first = await gateway.begin_chat(prose(5000), model="smollm2", stream=True, max_tokens=50)
    await engine.asked_for(1)
    second = await gateway.begin_chat(prose(5000), model="smollm2", stream=True, max_tokens=50)
    await gateway.until(lambda: gateway.queued == 1)
    assert len(engine.asked) == 1
    free.set()
    assert (await first.reply()).complete
    assert (await second.reply()).complete
    free.clear()
    engine.now_plays(says("a", "b", until=free, prompt=2900))
    small = [await gateway.begin_chat(prose(2900), model="smollm2", stream=True, max_tokens=50) for _ in range(2)]
    await engine.asked_for(4)
    assert engine.most_busy == 2
    free.set()
    for client in small:
        assert (await client.reply()).complete


async def test_c5_a_prompt_that_an_engine_cut_short_is_noticed(start: Start) -> None:
    gateway = await start({"b1": vllm(says("plausible", prompt=4096), window=65_536)})
    assert (await gateway.chat(prose(20_000))).status == 200
    await gateway.idle()
    assert await gateway.value('kvgate_prompt_truncated_total{backend="b1"}') == 1
    told = [line for line in await gateway.log_lines() if "thrown its front away" in line.get("message", "")]
    assert [(line["backend"], line["counted"]) for line in told] == [("b1", 4096)]
    after = await gateway.chat(prose(20_000))
    assert after.status == 200
    await gateway.idle()
    assert await gateway.value('kvgate_prompt_truncated_total{backend="b1"}') == 2, "a cut prompt teaches nothing"
    assert len([line for line in await gateway.log_lines() if "its front away" in line.get("message", "")]) == 1


async def test_c6_each_client_is_told_the_window_that_its_key_and_class_allow_and_is_held_to_it(start: Start) -> None:
    rest = """
auth:
  keys:
    - {name: small, key: key-of-small-1, limits: {context: 3000}}
    - {name: batch, key: key-of-batch-1, class: batch}
    - {name: all, key: key-of-all-1}
classes: {batch: {context: 2000}}
"""
    gateway = await start({"b1": vllm(says("ok"), window=8192)}, rest=rest, b1={"context": "6000"})
    for key, window, whose in [("small", 3000, "key"), ("batch", 2000, "class of requests"), ("all", 6000, "backends")]:
        client = await gateway.connect()
        headers = {"authorization": f"Bearer key-of-{key}-1"}
        entry = (await client.request("GET", "/v1/models/tiny", **headers)).json
        assert entry["max_model_len"] == window
        body = {"model": "tiny", "messages": [{"role": "user", "content": prose(2 * window)}]}
        reply = await gateway.ask(body, "/v1/chat/completions", **headers)
        assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
        said = reply.error["message"]
        assert f"maximum context length is {window} tokens" in said
        assert whose in said
        assert "estimated" in said
        short = {"model": "tiny", "messages": [{"role": "user", "content": prose(window - 800)}]}
        assert (await gateway.ask(short, "/v1/chat/completions", **headers)).status == 200


async def test_c6_no_client_is_told_of_more_output_than_its_window_holds(start: Start) -> None:
    rest = """
auth: {keys: [{name: small, key: key-of-small-1, limits: {context: 2000}}, {name: all, key: key-of-all-1}]}
models: [{name: code, serves: m, output: {ceiling: 3000}}]
"""
    gateway = await start({"b1": vllm(says("ok"), model="m", window=8192)}, rest=rest)
    for key, window, output in [("small", 2000, 2000), ("all", 8192, 3000)]:
        client = await gateway.connect()
        entry = (await client.request("GET", "/v1/models/code", authorization=f"Bearer key-of-{key}-1")).json
        assert (entry["max_model_len"], entry["max_output_tokens"]) == (window, output)


@pytest.mark.parametrize(("policy", "told"), [("", 8192), (", context: longest", 32_768), (", context: 5000", 5000)])
async def test_c6_the_list_tells_the_window_that_is_kept(start: Start, policy: str, told: int) -> None:
    engines = {
        "small": vllm(says("ok"), model="m", window=8192),
        "large": vllm(says("ok", prompt=20_000), model="m", window=32_768),
    }
    rest = f"models: [{{name: code, serves: m, output: {{ceiling: 700}}{policy}}}]"
    gateway = await start(engines, rest=rest)
    entry = (await gateway.get("/v1/models/code")).json
    assert (entry["max_model_len"], entry["context_window"], entry["max_output_tokens"]) == (told, told, 700)
    assert (await gateway.get("/v1/models")).json["data"] == [entry]
    client = await gateway.connect()
    theirs = (await client.request("GET", "/v1/models/code", anthropic_version="2023-06-01")).json
    assert (theirs["max_input_tokens"], theirs["max_tokens"]) == (told, 700)
    shown = (await gateway.ask({"model": "code"}, "/api/show")).json["model_info"]
    assert shown[f"{shown['general.architecture']}.context_length"] == told
    if told > 20_000:
        reply = await gateway.chat(prose(20_000), model="code")
        assert (reply.status, reply.headers["x-kvgate-backend"]) == (200, "large")
