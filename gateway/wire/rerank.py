"""Read from a body of /v1/rerank or /v1/score what the decision needs; the body itself is forwarded as it came."""

from __future__ import annotations

from itertools import accumulate, zip_longest

import msgspec

from gateway.wire.chat_body import NOTHING
from gateway.wire.chat_request import ChatRequest
from gateway.wire.distinct import distinct_members
from gateway.wire.inputs import Inputs, inputs, is_unsaid
from gateway.wire.malformed import decoded
from gateway.wire.members import Member
from gateway.wire.plain_request import Named, plain_request
from gateway.wire.rendered import Rendered

__all__ = ["parse_rerank", "parse_score"]

MAX_DOCUMENTS = 10_000
"""The most that Cohere's API takes for `documents`."""
REPEATED_BYTES = 2**20
"""Bytes of queries that are written out again, one for each further document; past that they are not counted. A query
of 100 KB over 10,000 documents would be a gigabyte of text."""


class _Rerank(Named):
    query: msgspec.Raw = NOTHING
    documents: msgspec.Raw = NOTHING
    texts: msgspec.Raw = NOTHING


class _Score(Named):
    text_1: msgspec.Raw = NOTHING
    data_1: msgspec.Raw = NOTHING
    queries: msgspec.Raw = NOTHING
    query: msgspec.Raw = NOTHING
    text_2: msgspec.Raw = NOTHING
    data_2: msgspec.Raw = NOTHING
    documents: msgspec.Raw = NOTHING
    items: msgspec.Raw = NOTHING


_RERANK = msgspec.json.Decoder(_Rerank)
_SCORE = msgspec.json.Decoder(_Score)
_FIRST = ("text_1", "data_1", "queries", "query")
_SECOND = ("text_2", "data_2", "documents", "items")


def parse_rerank(body: bytes) -> ChatRequest:
    """Read a reranking body: `query` and `documents` (Cohere, Jina, vLLM, llama.cpp, SGLang) or `texts` (TEI).

    `prompts` counts the documents: each is read together with the query. Raises MalformedRequest with `param` naming
    the member at fault.
    """
    parsed = decoded(_RERANK, body)
    query = inputs("query", parsed.query, MAX_DOCUMENTS).joined()  # a list: the parts of one query (SGLang)
    name = "texts" if is_unsaid(parsed.documents) and not is_unsaid(parsed.texts) else "documents"
    documents = inputs(name, getattr(parsed, name), MAX_DOCUMENTS)
    return _pairs("rerank", parsed.model, query, documents, distinct_members(body))


def parse_score(body: bytes) -> ChatRequest:
    """Read a scoring body: vLLM's `text_1` and `text_2`, later `data_*` or `queries` and `documents` or `items`, or
    SGLang's `query` and `items`.

    `prompts` counts the pairs, 1:N or N:N. Raises MalformedRequest with `param` naming the member at fault.
    """
    parsed = decoded(_SCORE, body)
    first, second = _given(parsed, _FIRST), _given(parsed, _SECOND)
    return _pairs("score", parsed.model, first, second, distinct_members(body))


def _given(parsed: _Score, names: tuple[str, ...]) -> Inputs:
    name = next((name for name in names if not is_unsaid(getattr(parsed, name))), names[0])
    return inputs(name, getattr(parsed, name), MAX_DOCUMENTS)


def _pairs(surface: str, model: str | None, first: Inputs, second: Inputs, members: tuple[Member, ...]) -> ChatRequest:
    pairs = max(len(first.texts), len(second.texts))
    images = first.images + second.images
    tokens: int | None = None
    if first.tokens is not None and second.tokens is not None:
        tokens = sum(first.tokens) * _times(first, pairs) + sum(second.tokens) * _times(second, pairs)
    return plain_request(
        surface,
        model,
        _rendered(first, second),
        members,
        prompts=pairs,
        prompt_tokens=tokens,
        images=images,
        needs=("vision",) if images else (),
    )


def _times(side: Inputs, pairs: int) -> int:
    return pairs if len(side.texts) == 1 else 1


def _rendered(first: Inputs, second: Inputs) -> Rendered:
    if len(first.texts) == 1:  # one for all of the others, and none once that is too much
        query = first.texts[0]
        again = REPEATED_BYTES // max(1, len(query))
        queries = [query] * min(len(second.texts), 1 + again)
    else:
        queries = first.texts
    pieces: list[bytes] = []
    for query, document in zip_longest(queries, second.texts, fillvalue=b""):
        pieces += (query, b"\n", document)
    return Rendered(pieces, list(accumulate(map(len, pieces)))[2::3])
