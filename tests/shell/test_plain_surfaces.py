"""What is no generation, end to end: embeddings, reranking, tokens, sounds; and what no backend offers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import tracemalloc
from typing import Any

import pytest

from tests.relay.fake_engine import Request, Script, Wire, chunk, json_answer
from tests.shell.engine_double import llama_cpp, openai_compatible, page, says, vllm
from tests.shell.fixtures import Start

MB = 1 << 20


def answers(payload: object, status: int = 200) -> Script:
    return json_answer(payload, status)


async def test_embeddings_pass_with_the_name_and_the_figures(start: Start) -> None:
    engine = openai_compatible(
        answers(
            {
                "object": "list",
                "model": "org/e",
                "data": [{"index": 0, "embedding": [0.5]}],
                "usage": {"prompt_tokens": 5},
            }
        ),
        model="org/e",
    )
    models = "models: [{name: embed, serves: org/e}]"
    gateway = await start({"b1": engine}, rest=models)
    sent = b'{"model": "embed" , "input":["caf\\u00e9"], "x_unknown":[1.0,2e3]}'
    reply = await gateway.ask(sent, "/v1/embeddings")
    assert reply.status == 200
    assert reply.json["model"] == "embed"
    assert reply.json["data"] == [{"index": 0, "embedding": [0.5]}]
    assert engine.asked[0].line.startswith("POST /v1/embeddings ")
    assert engine.asked[0].body == sent.replace(b'"embed"', b'"org/e"')
    await gateway.idle()
    assert await gateway.value('kvgate_tokens_total{backend="b1",kind="prompt",model="embed"}') == 5


async def test_b3_thirty_megabytes_of_embeddings_pass_with_little_memory(start: Start) -> None:
    digest = hashlib.sha256()
    piece = b"[" + b"0.0123456789," * 40_000 + b"1],"

    async def script(_request: Request, wire: Wire) -> None:
        head = b'{"object":"list","model":"some-model","data":['
        await wire.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", chunk(head)
        )
        digest.update(head)
        sent = 0
        while sent < 30 * MB:
            await wire.send(chunk(piece))
            digest.update(piece)
            sent += len(piece)
            await asyncio.sleep(0)
        tail = b'[0]],"usage":{"prompt_tokens":9,"total_tokens":9}}'
        digest.update(tail)
        await wire.send(chunk(tail), b"0\r\n\r\n")

    gateway = await start({"b1": openai_compatible(script)})
    client = await gateway.send({"model": "some-model", "input": "x"}, "/v1/embeddings")
    tracemalloc.start()
    try:
        reply = await client.reply()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reply.complete
    assert hashlib.sha256(reply.body).digest() == digest.digest()
    # The client of this test keeps the 30 MB itself, some of it twice while it joins them.
    assert peak < 30 * MB * 2 + 15 * MB


@pytest.mark.parametrize(
    ("path", "at_engine", "body"),
    [
        ("/rerank", "/v1/rerank", {"query": "q", "documents": ["a", "b"]}),
        ("/v1/score", "/v1/score", {"text_1": "a", "text_2": ["b"]}),
        ("/v1/images/generations", "/v1/images/generations", {"prompt": "p"}),
    ],
)
async def test_plain_surfaces_reach_the_engine(start: Start, path: str, at_engine: str, body: dict[str, Any]) -> None:
    engine = openai_compatible(answers({"model": "some-model", "results": []}))
    gateway = await start({"b1": engine})
    reply = await gateway.ask({"model": "some-model", **body}, path)
    assert (reply.status, reply.json) == (200, {"model": "some-model", "results": []})
    assert engine.asked[0].line == f"POST {at_engine} HTTP/1.1"
    assert engine.body() == {"model": "some-model", **body}


async def test_a_request_without_a_model_goes_to_the_only_one(start: Start) -> None:
    engine = llama_cpp(answers({"tokens": [1, 2]}))
    gateway = await start({"b1": engine})
    reply = await gateway.ask({"content": "ab"}, "/tokenize")
    assert (reply.status, reply.json) == (200, {"tokens": [1, 2]})
    assert engine.body() == {"content": "ab"}


async def test_a_request_without_a_model_among_several_names_them(start: Start) -> None:
    gateway = await start({"b1": llama_cpp(), "b2": vllm()})
    reply = await gateway.ask({"content": "ab"}, "/tokenize")
    assert reply.status == 400
    assert reply.json["error"]["param"] == "model"
    assert "smollm2, tiny" in reply.json["error"]["message"]


async def test_what_no_backend_offers_is_refused_by_name(start: Start) -> None:
    engine = vllm()
    gateway = await start({"b1": engine})
    reply = await gateway.ask({"model": "tiny", "query": "q", "documents": ["a"]}, "/v1/rerank")
    assert reply.status == 404
    assert reply.json["error"]["code"] == "surface_not_offered"
    assert "offers reranking" in reply.json["error"]["message"]
    assert engine.asked == []


async def test_an_engine_that_turns_out_not_to_offer_it_is_not_to_blame(start: Start) -> None:
    lacks = openai_compatible(
        answers({"error": {"message": "This server does not support embeddings.", "code": 501}}, 501)
    )
    gateway = await start({"b1": lacks})
    reply = await gateway.ask({"model": "some-model", "input": "x"}, "/v1/embeddings")
    assert reply.status == 404
    assert reply.json["error"]["code"] == "surface_not_offered"
    assert (await gateway.chat(model="some-model")).status == 404  # the script says 501 to all; the backend is still in
    lacks.now_plays(says("ok"))
    assert (await gateway.chat(model="some-model")).status == 200


def form(file: bytes, *, boundary: str, model: str) -> bytes:
    def part(head: str, data: bytes) -> bytes:
        return f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + data + b"\r\n"

    parts = (
        part('name="file"; filename="a.mp3"', file),
        part('name="language"', "français".encode()),
        part('name="model"', model.encode()),
        part('name="api_base"', b"http://elsewhere"),
    )
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


async def test_b2_a_form_of_five_megabytes_with_the_model_after_the_file(start: Start) -> None:
    boundary = "------------------------d74496d66958873e"
    file = os.urandom(2 * MB) + b"\r\n--d74496\r\n--" + boundary[:-1].encode() + b"\r\n\r\n" + os.urandom(3 * MB)
    engine = openai_compatible(answers({"text": "bonjour"}), model="org/whisper")
    gateway = await start({"b1": engine}, rest="models: [{name: ears, serves: org/whisper}]")
    kind = f"multipart/form-data; boundary={boundary}"
    client = await gateway.connect()
    body = form(file, boundary=boundary, model="ears")
    head = f"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
    await client.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    reply = await client.reply()
    assert (reply.status, reply.json) == (200, {"text": "bonjour"})
    got = engine.asked[0]
    assert got.values("content-type") == [kind]
    assert got.body == form(file, boundary=boundary, model="org/whisper").replace(
        f'--{boundary}\r\nContent-Disposition: form-data; name="api_base"\r\n\r\nhttp://elsewhere\r\n'.encode(), b""
    )


async def test_a_transcript_as_plain_text_passes(start: Start) -> None:
    async def script(_request: Request, wire: Wire) -> None:
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\nbonjour")

    gateway = await start({"b1": openai_compatible(script)})
    body = form(b"x" * 100, boundary="b", model="some-model")
    client = await gateway.connect()
    await client.send(
        b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
    reply = await client.reply()
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, b"bonjour", "text/plain")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/embeddings"])
async def test_a1_no_member_that_names_an_address_or_a_key_reaches_an_engine(start: Start, path: str) -> None:
    engine = openai_compatible(answers({"error": {"message": "no", "code": 400}}, 400))
    gateway = await start({"b1": engine})
    evil = {"api_base": "http://x", "base_url": "http://x", "api_key": "k", "extra_body": {"api_base": "http://x"}}
    body = {
        "model": "some-model",
        "input": "x",
        "messages": [{"role": "user", "content": "x"}],
        "max_tokens": 5,
        **evil,
    }
    await gateway.ask(body, path)
    assert engine.asked
    assert not {"api_base", "base_url", "api_key", "extra_body", "extra_headers"} & set(engine.body())
    assert b"http://x" not in engine.asked[0].body
    assert json.loads(engine.asked[0].body)["model"] == "some-model"


async def test_t2_tokens_are_counted_as_they_would_be_admitted(start: Start) -> None:
    gateway = await start({"b1": openai_compatible(says("ok", prompt=300))})
    body = {
        "model": "some-model",
        "system": "s",
        "messages": [{"role": "user", "content": "The queue is here, not there. " * 40}],
    }
    reply = await gateway.ask(body, "/v1/messages/count_tokens")
    assert reply.status == 200
    assert reply.headers["x-kvgate-count"] in ("estimated", "exact")
    assert 200 <= reply.json["input_tokens"] <= 450


OPENAI_SAYS = {
    "object": "list",
    "model": "m",
    "data": [{"index": 0, "embedding": [0.5, 1]}],
    "usage": {"prompt_tokens": 3},
}


async def test_ollama_s_embeddings_from_an_engine_that_has_openai_s(start: Start) -> None:
    engine = openai_compatible(answers(OPENAI_SAYS), model="m")
    engine.pages["/api/embed"] = page({"error": {"message": "no such route"}}, 404)
    gateway = await start({"b1": engine})
    reply = await gateway.ask({"model": "m:latest", "input": ["x"]}, "/api/embed")
    assert (reply.status, reply.json["model"], reply.json["embeddings"]) == (200, "m:latest", [[0.5, 1]])
    assert engine.asked[0].line.startswith("POST /v1/embeddings ")
    assert engine.body()["model"] == "m"
    old = await gateway.ask({"model": "m", "prompt": "x"}, "/api/embeddings")
    assert (old.status, old.json["embedding"]) == (200, [0.5, 1])


async def test_a_model_is_loaded_for_ollama_s_clients_without_a_word_to_the_engine(start: Start) -> None:
    engine = openai_compatible(model="m")
    gateway = await start({"b1": engine})
    for path, body in (("/api/chat", {"messages": []}), ("/api/generate", {}), ("/api/embed", {"input": []})):
        reply = await gateway.ask({"model": "m", **body}, path)
        assert (reply.status, reply.json["model"]) == (200, "m")
    assert (await gateway.ask({"model": "other"}, "/api/generate")).status == 404
    assert engine.asked == []


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/rerank", "/v1/audio/speech", "/tokenize"])
async def test_a_page_for_people_is_no_answer(start: Start, path: str) -> None:
    gateway = await start({"b1": openai_compatible(page(b"<html>10.9.8.7 sk-secret</html>", 200, "text/html"))})
    if path == "/tokenize":
        gateway = await start({"b1": vllm(page(b"<html>10.9.8.7 sk-secret</html>", 200, "text/html"))})
    model = "tiny" if path == "/tokenize" else "some-model"
    body = {"model": model, "input": "x", "query": "q", "documents": ["d"], "voice": "v", "prompt": "p"}
    reply = await gateway.ask(body, path)
    assert reply.status == 502
    assert reply.json["error"]["type"] == "upstream_error"
    assert b"secret" not in reply.body


async def test_a_file_that_breaks_engines_holds_back_no_other(start: Start) -> None:
    async def dies(_request: Request, wire: Wire) -> None:
        wire.reset()

    engines = {name: openai_compatible(dies) for name in ("b1", "b2")}
    gateway = await start(engines)

    async def hear(file: bytes) -> Any:
        body = form(file, boundary="b", model="some-model")
        client = await gateway.connect()
        head = b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        await client.send(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return await client.reply()

    assert (await hear(b"bad")).status == 502
    for engine in engines.values():
        engine.now_plays(answers({"text": "fine"}))
    await gateway.up("b1", "b2")
    again = await hear(b"bad")
    assert (again.status, again.json["error"]["code"]) == (503, "held_back")
    assert 1 <= int(again.headers["retry-after"]) <= 59
    assert (await hear(b"good")).json == {"text": "fine"}


async def test_c3_a_key_s_own_cap_counts_for_what_is_embedded_too(start: Start) -> None:
    keys = "auth: {keys: [{name: ann, key: key-of-ann-0123456789, limits: {context: 500}}]}"
    engine = openai_compatible(answers(OPENAI_SAYS), model="m")
    gateway = await start({"b1": engine}, rest=keys)
    bearer = {"authorization": "Bearer key-of-ann-0123456789"}
    reply = await gateway.ask({"model": "m", "input": "word " * 3000}, "/v1/embeddings", **bearer)
    assert (reply.status, reply.json["error"]["code"]) == (400, "context_length_exceeded")
    assert (await gateway.ask({"model": "m", "input": ["word " * 100] * 30}, "/v1/embeddings", **bearer)).status == 200


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_a2_an_engine_s_words_are_told_without_where_it_lives(start: Start, status: int) -> None:
    text = "Incorrect API key provided: its-own-key. upstream http://10.9.8.7:8000/v1 at /srv/model/x.py, prompt is odd"
    engine = openai_compatible(answers({"error": {"message": text, "code": status}}, status), model="org/m")
    gateway = await start({"b1": engine}, rest="models: [{name: m, serves: org/m}]", b1={"key": "its-own-key"})
    for path, body in (("/v1/chat/completions", {}), ("/v1/messages", {"max_tokens": 9})):
        reply = await gateway.ask({"model": "m", "messages": [{"role": "user", "content": "x"}], **body}, path)
        assert reply.status == status
        assert b"prompt is odd" in reply.body
        assert not any(secret in reply.body for secret in (b"its-own-key", b"10.9.8.7", b"/srv/model"))


async def test_count_and_estimate_see_every_turn_of_the_client_s(start: Start) -> None:
    gateway = await start({"b1": openai_compatible(model="m")})
    turns = [{"role": "user", "content": "a b c"}] * 600
    reply = await gateway.ask({"model": "m", "messages": turns}, "/v1/messages/count_tokens")
    assert 3000 <= reply.json["input_tokens"] <= 7000
