from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import MalformedRequest
from gateway.wire.rerank import MAX_DOCUMENTS, REPEATED_BYTES, parse_rerank, parse_score

PAIRS = [b"q", b"\n", b"a", b"q", b"\n", b"b"]


def body(**more: Any) -> bytes:
    return json.dumps({"model": "r", **more}).encode()


@pytest.mark.parametrize(
    "more",
    [
        {"query": "q", "documents": ["a", "b"], "top_n": 1},
        {"query": "q", "documents": [{"text": "a"}, {"text": "b", "id": 1}], "return_documents": True},
        {"query": "q", "documents": ["a", {"text": "b"}], "rank_fields": ["text"]},
        {"query": "q", "documents": [{"title": "a"}, {"title": "b"}]},
        {"query": "q", "texts": ["a", "b"], "raw_scores": False},
        {"query": "q", "documents": None, "texts": ["a", "b"]},
        {"query": {"text": "q"}, "documents": ["a", "b"]},
        {"query": [{"type": "text", "text": "q"}], "documents": [[{"type": "text", "text": "a"}], "b"]},
    ],
)
def test_the_dialects_of_reranking(more: dict[str, Any]) -> None:
    req = parse_rerank(body(**more))
    assert (req.surface, req.prompts, req.text.pieces) == ("rerank", 2, PAIRS)
    assert req.text.message_ends == [3, 6]


@pytest.mark.parametrize(
    "more",
    [
        {"text_1": "q", "text_2": ["a", "b"]},
        {"text_1": ["q", "q"], "text_2": ["a", "b"]},
        {"data_1": "q", "data_2": ["a", "b"]},
        {"queries": "q", "documents": ["a", "b"]},
        {"queries": ["q"], "items": ["a", "b"]},
        {"query": "q", "items": ["a", "b"], "label_token_ids": [1, 2]},
        {"queries": {"content": [{"type": "text", "text": "q"}]}, "documents": ["a", {"text": "b"}]},
    ],
)
def test_the_dialects_of_scoring(more: dict[str, Any]) -> None:
    req = parse_score(body(**more))
    assert (req.surface, req.prompts, req.text.pieces) == ("score", 2, PAIRS)


def test_one_pair_and_many_queries() -> None:
    assert parse_score(body(text_1="q", text_2="a")).prompts == 1
    req = parse_score(body(text_1=["p", "q"], text_2="a"))
    assert req.prompts == 2
    uneven = parse_score(body(text_1=["p", "q"], text_2=["a", "b", "c"]))  # the engine's to refuse
    assert uneven.prompts == 3


def test_token_ids_are_counted_exactly() -> None:
    req = parse_score(body(query=[1, 2, 3], items=[[4, 5], [6]], label_token_ids=[9, 10]))
    assert (req.prompts, req.prompt_tokens) == (2, 9)
    assert parse_score(body(query=[1, 2, 3], items=["a"])).prompt_tokens is None
    assert parse_score(body(text_1=[[1], [2, 3]], text_2=[[4], [5]])).prompt_tokens == 5


def test_pictures_are_a_need() -> None:
    picture = {"content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
    req = parse_rerank(body(query="q", documents=[picture, "b"]))
    assert (req.images, req.needs) == (1, {"vision"})


def test_a_long_query_over_many_documents_stays_small() -> None:
    req = parse_rerank(body(query="q" * 100_000, documents=["d"] * MAX_DOCUMENTS))
    assert req.prompts == req.text.messages == MAX_DOCUMENTS
    assert REPEATED_BYTES < sum(map(len, req.text.pieces)) < REPEATED_BYTES + 200_000


@pytest.mark.parametrize(
    ("parse", "more", "param"),
    [
        (parse_rerank, {"documents": ["a"]}, "query"),
        (parse_rerank, {"query": "q"}, "documents"),
        (parse_rerank, {"query": "q", "documents": []}, "documents"),
        (parse_rerank, {"query": "q", "texts": []}, "texts"),
        (parse_rerank, {"query": 1, "documents": ["a"]}, "query"),
        (parse_rerank, {"query": "q", "documents": ["a", 1.5]}, "documents[1]"),
        (parse_rerank, {"query": "q", "documents": ["a"] * (MAX_DOCUMENTS + 1)}, "documents"),
        (parse_score, {"text_2": ["a"]}, "text_1"),
        (parse_score, {"text_1": "q"}, "text_2"),
        (parse_score, {"queries": [], "documents": ["a"]}, "queries"),
        (parse_score, {"queries": "q", "items": []}, "items"),
        (parse_score, {"queries": "q", "items": [None]}, "items[0]"),
    ],
)
def test_what_is_refused(parse: Any, more: dict[str, Any], param: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        parse(body(**more))
    assert caught.value.param == param
