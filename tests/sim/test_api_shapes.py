"""Answers, streams and errors against recordings of the real engine."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.sim.serve import EmulatedEngine
from tests.sim.recordings import FOLDER, events_of, recorded, shape

ANSWERS = recorded("answers")
ERRORS = recorded("errors")
STREAMS = [name for name, exchange in ANSWERS.items() if "events" in exchange]
WHOLE = [name for name, exchange in ANSWERS.items() if "events" not in exchange]


async def ask(client: aiohttp.ClientSession, engine: EmulatedEngine, request: dict[str, Any]) -> tuple[Any, str]:
    body = request.get("body")
    if "words" in request:
        content = "word " * request["words"]
        body = {"model": "tiny", "messages": [{"role": "user", "content": content}], "max_tokens": 8}
    data = json.dumps(body) if isinstance(body, dict) else body
    headers = {"Content-Type": request["content_type"]} if "content_type" in request else {}
    async with client.request(request["method"], engine.url + request["path"], data=data, headers=headers) as response:
        return response, await response.text()


@pytest.mark.parametrize("name", WHOLE)
async def test_whole_answers_have_the_recorded_keys(
    name: str, tiny: EmulatedEngine, client: aiohttp.ClientSession
) -> None:
    exchange = ANSWERS[name]
    response, text = await ask(client, tiny, exchange["request"])
    assert response.status == exchange["status"] == 200
    if exchange["body"] is None:
        assert text == ""
        return
    assert response.headers["Content-Type"] == exchange["content_type"]
    mine, real = json.loads(text), exchange["body"]
    if "tokens" in real:
        assert mine["count"] == len(mine.pop("tokens"))
        assert real["count"] == len(real["tokens"])
        real = {key: value for key, value in real.items() if key != "tokens"}
    assert shape(mine) == shape(real)


@pytest.mark.parametrize("name", [name for name in STREAMS if name != "chat_n2_stream"])
async def test_streams_have_the_recorded_events_in_the_recorded_order(
    name: str, tiny: EmulatedEngine, client: aiohttp.ClientSession
) -> None:
    exchange = ANSWERS[name]
    response, text = await ask(client, tiny, exchange["request"])
    assert response.headers["Content-Type"] == exchange["content_type"]
    assert [shape(event) for event in events_of(text)] == [shape(event) for event in exchange["events"]]


async def test_a_stream_of_two_choices_greets_both_and_sums_their_usage(
    tiny: EmulatedEngine, client: aiohttp.ClientSession
) -> None:
    exchange = ANSWERS["chat_n2_stream"]
    _, text = await ask(client, tiny, exchange["request"])
    mine, real = events_of(text), exchange["events"]
    assert [shape(event) for event in mine[:2]] == [shape(event) for event in real[:2]]
    assert [shape(event) for event in mine[-2:]] == [shape(event) for event in real[-2:]]
    assert len(mine) == len(real)
    assert mine[-2]["usage"]["completion_tokens"] == real[-2]["usage"]["completion_tokens"] == 4
    for index in (0, 1):
        choice = [event["choices"][0] for event in mine[2:-2] if event["choices"][0]["index"] == index]
        assert [part["finish_reason"] for part in choice] == [None, "length"]


@pytest.mark.parametrize("name", sorted(ERRORS.keys() - {"overload_n7"}))
async def test_errors_are_worded_as_recorded(name: str, tiny: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    exchange = ERRORS[name]
    response, text = await ask(client, tiny, exchange["request"])
    assert response.status == exchange["status"]
    assert response.headers["Content-Type"] == exchange["content_type"]
    assert json.loads(text) == exchange["body"]


async def test_beyond_the_queue_limit_the_answer_is_503(tiny: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    exchange = ERRORS["overload_n7"]
    body = json.loads(exchange["request"]["body"]) | {"n": 401}
    response, text = await ask(client, tiny, exchange["request"] | {"body": body})
    assert response.status == exchange["status"] == 503
    assert json.loads(text) == exchange["body"]
    assert "Retry-After" not in response.headers


async def test_prompt_and_answer_together_may_be_too_long(tiny: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    body = {"prompt": "word " * 1600, "max_tokens": 100}
    async with client.post(tiny.url + "/v1/completions", json=body) as response:
        error = (await response.json())["error"]
    assert response.status == 400
    assert "you requested 100 output tokens and your prompt contains at least 1949 input tokens" in error["message"]
    assert (error["type"], error["param"]) == ("BadRequestError", "input_tokens")


@pytest.mark.parametrize("prompt", [7, None, [], "", [[]], ["text", 5], [1, "text"], [[1], "text", None], [True]])
async def test_a_prompt_of_no_use_is_a_400(prompt: object, tiny: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    async with client.post(tiny.url + "/v1/completions", json={"prompt": prompt}) as response:
        error = (await response.json())["error"]
    assert response.status == error["code"] == 400
    assert error["param"] in ("prompt", "body.prompt")


@pytest.mark.parametrize(
    ("prompt", "tokens"), [("text", 1), (["some", "texts"], 3), ([5, 6, 7], 3), ([[5], [6, 7]], 3)]
)
async def test_prompts_come_as_text_or_ids_one_or_several(
    prompt: object, tokens: int, tiny: EmulatedEngine, client: aiohttp.ClientSession
) -> None:
    async with client.post(tiny.url + "/v1/completions", json={"prompt": prompt, "max_tokens": 1}) as response:
        assert (await response.json())["usage"]["prompt_tokens"] == tokens


async def test_metrics_have_the_recorded_families_and_labels(
    tiny: EmulatedEngine, client: aiohttp.ClientSession
) -> None:
    async with client.get(tiny.url + "/metrics") as response:
        assert response.headers["Content-Type"] == "text/plain; version=1.0.0; charset=utf-8"
        mine = {family.name: family for family in text_string_to_metric_families(await response.text())}
    real = {f.name: f for f in text_string_to_metric_families((FOLDER / "sim_metrics.txt").read_text())}
    assert mine.keys() == real.keys()
    for name, family in real.items():
        assert mine[name].type == family.type
        assert {sample.name for sample in mine[name].samples} == {sample.name for sample in family.samples}
        labels = {frozenset(sample.labels) for sample in family.samples}
        if name == "vllm:cache_config_info":
            [own] = mine[name].samples
            assert all(own.labels.keys() <= known for known in labels)
            assert int(own.labels["num_gpu_blocks"]) == tiny.service.profile.num_blocks
        else:
            assert {frozenset(sample.labels) for sample in mine[name].samples} == labels


async def test_metrics_count_what_was_done(tiny: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    prompt = "the same words again and again " * 20
    for _ in range(2):
        body = {"prompt": prompt, "max_tokens": 5}
        async with client.post(tiny.url + "/v1/completions", json=body) as response:
            usage = (await response.json())["usage"]
    async with client.get(tiny.url + "/metrics") as response:
        families = text_string_to_metric_families(await response.text())
    values = {sample.name: sample.value for family in families for sample in family.samples if len(sample.labels) == 2}
    tokens = usage["prompt_tokens"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == (tokens - 1) // 16 * 16
    assert values["vllm:prompt_tokens_total"] == values["vllm:prefix_cache_queries_total"] == 2 * tokens
    assert values["vllm:prefix_cache_hits_total"] == (tokens - 1) // 16 * 16
    assert values["vllm:generation_tokens_total"] == 10
    assert values["vllm:num_requests_running"] == values["vllm:num_requests_waiting"] == 0


async def test_the_request_id_becomes_the_answers_id(tiny: EmulatedEngine, client: aiohttp.ClientSession) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
    headers = {"X-Request-Id": "abc-1"}
    async with client.post(tiny.url + "/v1/chat/completions", json=body, headers=headers) as response:
        assert (await response.json())["id"] == "chatcmpl-abc-1"
