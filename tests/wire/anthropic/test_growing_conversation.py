"""A conversation that is longer by a turn gives the same chat messages and some more: prefix caches key on that."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.anthropic.request_from_chat import from_chat
from gateway.wire.anthropic.request_to_chat import to_chat
from gateway.wire.translation import Translated

WORDS = st.text(alphabet='abc é你"\\\n', min_size=1, max_size=8).filter(str.strip)
TEXT = WORDS.map(lambda words: {"type": "text", "text": words})
PICTURE = st.just({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}})
GIVEN = st.dictionaries(WORDS, st.one_of(st.integers(), WORDS, st.booleans()), max_size=3)


@st.composite
def exchanges(draw: st.DrawFn) -> list[dict[str, Any]]:
    """What is added to a history at a time: an answer, the results of its calls, and what the user says."""
    thoughts = [{"type": "thinking", "thinking": draw(WORDS), "signature": "s"}] if draw(st.booleans()) else []
    said = draw(st.lists(TEXT, min_size=1, max_size=2))
    calls = [
        {"type": "tool_use", "id": f"t{number}", "name": "run", "input": draw(GIVEN)}
        for number in range(draw(st.integers(0, 2)))
    ]
    results = [
        {
            "type": "tool_result",
            "tool_use_id": call["id"],
            "content": draw(st.one_of(WORDS, st.lists(st.one_of(TEXT, PICTURE), max_size=2))),
            "is_error": draw(st.booleans()),
        }
        for call in calls
    ]
    words = draw(st.lists(st.one_of(TEXT, PICTURE), min_size=0 if results else 1, max_size=2))
    turns = [{"role": "assistant", "content": [*thoughts, *said, *calls]}, {"role": "user", "content": results + words}]
    return [*turns, {"role": "system", "content": draw(WORDS)}] if draw(st.booleans()) else turns


def written(make: Callable[[bytes], Translated], body: dict[str, Any]) -> bytes:
    """The messages of the translation, without the bracket that closes them."""
    made = make(json.dumps(body).encode())
    assert made.lost == ()
    assert made.body.endswith(b"]}")
    return made.body[made.body.index(b'"messages":[') : -2]


@given(st.lists(exchanges(), min_size=1, max_size=4), st.one_of(st.none(), WORDS))
def test_each_history_begins_with_the_one_before(history: list[list[dict[str, Any]]], system: str | None) -> None:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
    before = b""
    for added in [[], *history]:
        turns += added
        now = written(to_chat, {"model": "m", "system": system, "messages": turns})
        assert now.startswith(before)
        assert len(now) > len(before)
        before = now


@given(st.lists(exchanges(), min_size=1, max_size=4))
def test_and_so_it_does_the_other_way(history: list[list[dict[str, Any]]]) -> None:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
    before = b""
    for added in [[], *history]:
        turns += added
        chat = json.loads(to_chat(json.dumps({"model": "m", "messages": turns}).encode()).body)
        now = written(from_chat, chat)
        assert now.startswith(before)
        before = now


@pytest.mark.parametrize("moved", [0, 1])
def test_k1_cache_marks_that_move_change_nothing(moved: int) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    plain = {"model": "m", "messages": [{"role": "user", "content": blocks}]}
    marked = [{**block, **mark} if index == moved else block for index, block in enumerate(blocks)]
    body = {"model": "m", "messages": [{"role": "user", "content": marked}]}
    assert to_chat(json.dumps(body).encode()).body == to_chat(json.dumps(plain).encode()).body
