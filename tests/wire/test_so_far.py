"""What is kept of an answer, and another engine's stream as its rest: over recorded shapes, cut anywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.chat_stream import ChatStream
from gateway.wire.so_far import MOST_TEXT, SoFar


def event(delta: dict[str, Any] | None, finish: str | None = None, ident: str = "a", **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    payload = {"id": ident, "object": "chat.completion.chunk", "created": 1, "model": ident, "choices": choices, **more}
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def stream(pieces: list[str], ident: str, prompt: int) -> list[bytes]:
    usage = {"prompt_tokens": prompt, "completion_tokens": len(pieces), "total_tokens": prompt + len(pieces)}
    return [
        event({"role": "assistant", "content": ""}, ident=ident),
        *(event({"content": piece}, ident=ident) for piece in pieces),
        event({}, "stop", ident=ident),
        event(None, ident=ident, usage=usage),
        b"data: [DONE]\n\n",
    ]


def begun(*, ids: bool = False) -> SoFar:
    view = ChatStream("chat")
    return SoFar("chat", view, view, ids=ids)


def passed(so_far: SoFar, events: list[bytes]) -> list[dict[str, Any] | str]:
    """What the client is sent of these."""
    out: list[dict[str, Any] | str] = []
    for each in so_far.take(events):
        lines = [line for line in so_far.shown.see(each).forward.split(b"\n\n") if line.startswith(b"data: ")]
        out += ["[DONE]" if line == b"data: [DONE]" else json.loads(line[6:]) for line in lines]
    return out


def text_of(found: list[dict[str, Any] | str]) -> str:
    choices = [choice for each in found if isinstance(each, dict) for choice in each["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


WORDS = st.lists(
    st.sampled_from(["a", " b", "\n", "  ", "é", "\U0001f600", '"', "\\", " c\n"]), min_size=1, max_size=30
)


@given(WORDS, st.data())
def test_cut_anywhere_the_text_is_the_same_and_said_once(pieces: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(pieces)))
    so_far = begun()
    found = passed(so_far, stream(pieces, "a", 10)[: 1 + cut])
    before = so_far.given()
    text = "".join(pieces)
    if before is None:
        assert not "".join(pieces[:cut]).strip()
        return
    assert json.loads(before.pieces) == pieces[:cut]
    assert before.text + before.tail == "".join(pieces[:cut])
    assert before.text == before.text.rstrip()
    by_token = data.draw(st.booleans())
    if by_token:
        so_far.goes_on(given=before.count)
        rest = pieces[cut:] or [""]
    else:
        so_far.goes_on(given=before.count - before.blank, tail=before.tail)
        rest = [text[len(before.text) :]] if text[len(before.text) :] else [""]
    found += passed(so_far, stream(rest, "b", 10 + cut))
    assert text_of(found) == text
    chunks = [each for each in found if isinstance(each, dict)]
    assert {(each["id"], each["model"]) for each in chunks} == {("a", "a")}
    assert found[-1] == "[DONE]"
    assert sum("role" in choice["delta"] for each in chunks for choice in each["choices"]) == 1
    assert so_far.view.finish_reason == "stop"
    assert so_far.told is not None


def test_the_usage_is_that_of_both() -> None:
    so_far = begun()
    passed(so_far, stream(["a", "b", "c"], "a", 10)[:4])
    so_far.goes_on(given=3)
    found = passed(so_far, stream(["d", "e"], "b", 13))
    last = found[-2]
    assert isinstance(last, dict)
    assert last["usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert so_far.told is not None
    assert (so_far.told.prompt_tokens, so_far.told.completion_tokens) == (10, 2)


def test_token_ids_are_kept_and_not_shown() -> None:
    so_far = begun(ids=True)
    first = event({"role": "assistant", "content": ""}, prompt_token_ids=[1, 2])
    second = event({"content": 'say ,"token_ids":[1]'})
    second = second.replace(b'"finish_reason": null', b'"finish_reason": null,"token_ids":[3,4]')
    first = first.replace(b', "prompt_token_ids": [1, 2]', b',"prompt_token_ids":[1,2]')
    found = passed(so_far, [first, second])
    assert found[0]["prompt_token_ids"] is None  # type: ignore[index]
    assert found[1]["choices"][0]["token_ids"] is None  # type: ignore[index]
    assert text_of(found) == 'say ,"token_ids":[1]'
    before = so_far.given()
    assert before is not None
    assert before.ids == b"[1,2,3,4]"


@pytest.mark.parametrize(
    "delta",
    [{"tool_calls": [{"index": 0}]}, {"reasoning_content": "hm"}, {"reasoning": "hm"}, {"refusal": "no"}],
)
def test_what_is_not_text_does_not_go_on(delta: dict[str, Any]) -> None:
    so_far = begun()
    passed(so_far, [event({"content": "a"}), event(delta)])
    assert so_far.given() is None


def test_a_long_answer_is_let_go_and_a_short_one_kept_small() -> None:
    so_far = begun()
    for _ in range(40):
        passed(so_far, [event({"content": "x" * 100})] * 50)
    assert so_far.given() is not None
    for _ in range(40):
        passed(so_far, [event({"content": "x" * 100})] * 50)
    assert MOST_TEXT < 80 * 50 * 100
    assert so_far.given() is None
    assert not so_far._pieces
    assert not so_far._events


def test_a_finished_answer_does_not_go_on() -> None:
    so_far = begun()
    passed(so_far, stream(["a"], "a", 1))
    assert so_far.given() is None
