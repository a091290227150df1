from __future__ import annotations

import base64
import json
import struct
from typing import Any

import ollama
import openai.types
import pytest

from gateway.errors import MalformedRequest, StreamBroken
from gateway.wire.embeddings import parse_embeddings
from gateway.wire.ollama.embeddings import Embedding, from_openai, ollama_answer, openai_answer, to_openai
from tests.wire.ollama.samples import STAMP

NUMBERS = "[0.10000000149, -1e-05,3]"


def asked(translate: Any, **members: Any) -> Any:
    translated = translate(json.dumps({"model": "e", **members}).encode())
    assert translated.lost == ()
    return json.loads(translated.body)


def openai_body(*vectors: str, **members: Any) -> bytes:
    items = ",".join(f'{{"object":"embedding","index":{n},"embedding":{each}}}' for n, each in enumerate(vectors))
    rest = json.dumps({"model": "served", "object": "list", "usage": {"prompt_tokens": 9}, **members})[1:]
    return f'{{"data":[{items}],{rest}'.encode()


@pytest.mark.parametrize("given", ["a", ["a", "é"], ["", "b"]])
def test_inputs_pass_both_ways(given: Any) -> None:
    there = to_openai(json.dumps({"model": "e", "input": given, "truncate": True, "options": {"num_ctx": 1}}).encode())
    assert json.loads(there.body) == {"model": "e", "input": given}
    assert parse_embeddings(there.body).prompts == (1 if given == "a" else 2)
    assert asked(from_openai, input=given, user="u") == {"model": "e", "input": given, "truncate": False}
    assert asked(to_openai, input=given, dimensions=64, keep_alive=0)["dimensions"] == 64
    assert asked(from_openai, input=given, dimensions=64)["dimensions"] == 64


def test_the_older_api_has_one_prompt_and_one_embedding() -> None:
    translated = to_openai(b'{"model":"e","prompt":"a b"}')
    assert (json.loads(translated.body), translated.context) == ({"model": "e", "input": "a b"}, Embedding(single=True))
    whole = ollama_answer(openai_body(NUMBERS), translated.context, STAMP)
    assert whole == b'{"embedding":' + NUMBERS.encode() + b"}"
    assert len(ollama.EmbeddingsResponse.model_validate_json(whole).embedding) == 3


def test_numbers_keep_their_text_and_vectors_their_order() -> None:
    whole = ollama_answer(openai_body(NUMBERS, "[1,2]"), Embedding(), STAMP)
    assert NUMBERS.encode() in whole
    read = ollama.EmbedResponse.model_validate_json(whole)
    assert (read.model, list(read.embeddings[1]), read.prompt_eval_count) == ("lake", [1.0, 2.0], 9)
    turned = b'{"data":[{"index":1,"embedding":[2]},{"index":0,"embedding":[1]}]}'
    assert json.loads(ollama_answer(turned, None, STAMP))["embeddings"] == [[1], [2]]
    back = openai_answer(whole, Embedding(), STAMP)
    assert NUMBERS.encode() in back
    typed = openai.types.CreateEmbeddingResponse.model_validate_json(back)
    assert [item.index for item in typed.data] == [0, 1]
    assert (typed.model, typed.usage.prompt_tokens, typed.usage.total_tokens) == ("lake", 9, 9)


def test_base64_is_made_where_it_is_asked_for() -> None:
    translated = from_openai(b'{"model":"e","input":"a","encoding_format":"base64"}')
    assert translated.context == Embedding(base64=True)
    packed = base64.b64encode(struct.pack("<2f", 0.5, -2.0)).decode()
    body = openai_answer(b'{"embeddings":[[0.5,-2.0]],"prompt_eval_count":3}', translated.context, STAMP)
    assert json.loads(body)["data"][0]["embedding"] == packed
    assert json.loads(ollama_answer(openai_body(json.dumps(packed)), None, STAMP))["embeddings"] == [[0.5, -2.0]]
    assert json.loads(openai_answer(b'{"embedding":[0.5]}', None, STAMP))["data"][0]["embedding"] == [0.5]


def test_token_ids_have_no_place() -> None:
    for given in ([1, 2], [[1], [2]]):
        assert from_openai(json.dumps({"model": "e", "input": given}).encode()).lost == ("input",)


@pytest.mark.parametrize(
    ("translate", "members", "param"),
    [
        (to_openai, {}, "input"),
        (to_openai, {"input": []}, "input"),
        (to_openai, {"input": ""}, "input"),
        (to_openai, {"input": 7}, "input"),
        (to_openai, {"input": ["a", 7]}, "input[1]"),
        (to_openai, {"prompt": ["a"]}, "prompt"),
        (to_openai, {"prompt": ""}, "prompt"),
        (to_openai, {"input": "a", "dimensions": "x"}, "dimensions"),
        (to_openai, {"model": None, "input": "a"}, "model"),
        (from_openai, {}, "input"),
        (from_openai, {"input": []}, "input"),
        (from_openai, {"input": "a", "encoding_format": "hex"}, "encoding_format"),
        (from_openai, {"model": 7, "input": "a"}, "model"),
    ],
)
def test_an_odd_member_is_named(translate: Any, members: dict[str, Any], param: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        asked(translate, **members)
    assert refused.value.param == param


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b'{"data":[],"embeddings":[]}',
        b'{"data":[{"embedding":{}}],"embeddings":[{}]}',
        b'{"data":[{"embedding":[true]}],"embeddings":[["a"]]}',
        b'{"data":[{"embedding":[[1]]}],"embeddings":[[[1]]]}',
        b'{"data":[{"embedding":"!"}],"embeddings":[null]}',
        b'{"data":[{"embedding":"AAAA"}],"embeddings":["AAAA"]}',
        b'{"data":[{"embedding":"AADAfw=="}],"embeddings":[[NaN]]}',
        b'{"error":"x"}',
        b"\xff",
    ],
)
def test_what_is_no_answer(body: bytes) -> None:
    for read in (ollama_answer, openai_answer):
        for context in (None, Embedding(single=True), Embedding(base64=True)):
            with pytest.raises(StreamBroken):
                read(body, context, STAMP)


def test_numbers_too_large_for_base64_break_the_answer() -> None:
    with pytest.raises(StreamBroken):
        openai_answer(b'{"embeddings":[[1e300]]}', Embedding(base64=True), STAMP)
