"""A conversation that grew by a turn gives the same chat messages and some more (known failure K3)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.responses.request_from_chat import from_chat
from gateway.wire.responses.request_to_chat import to_chat
from tests.wire.anthropic.checked import chat_request

texts = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=8)


def part(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    return texts.map(lambda text: {"type": kind, "text": text})


pictures = st.just({"type": "input_image", "image_url": "data:image/png;base64,eA==", "detail": "auto"})
user_items = st.builds(
    lambda role, content: {"type": "message", "role": role, "content": content},
    st.sampled_from(["user", "user", "developer"]),
    st.one_of(texts, st.lists(st.one_of(part("input_text"), pictures), min_size=1, max_size=3)),
)
said = part("output_text").map(
    lambda text: {"type": "message", "role": "assistant", "content": [{**text, "annotations": []}]}
)
thought = part("summary_text").map(lambda text: {"type": "reasoning", "id": "rs", "summary": [text]})
kinds = st.sampled_from(["function_call", "custom_tool_call"])
outputs = st.one_of(texts, st.lists(st.one_of(part("input_text"), pictures), min_size=1, max_size=2))


@st.composite
def assistant_items(draw: st.DrawFn) -> list[dict[str, Any]]:
    items = draw(st.lists(st.one_of(said, thought), min_size=1, max_size=2))
    calls = draw(st.lists(st.tuples(kinds, texts, outputs), max_size=2))
    for number, (kind, text, _) in enumerate(calls):
        told = {"arguments": json.dumps({"x": text})} if kind == "function_call" else {"input": text}
        items.append({"type": kind, "call_id": f"c{number}", "name": "f", **told})
    for number, (kind, _, told) in enumerate(calls):
        items.append({"type": f"{kind}_output", "call_id": f"c{number}", "output": told})
    return items


turns = st.tuples(st.lists(user_items, min_size=1, max_size=2), assistant_items()).map(lambda both: both[0] + both[1])


def messages(items: list[dict[str, Any]]) -> bytes:
    made = to_chat(json.dumps({"model": "m", "instructions": "be kind", "input": items}).encode())
    assert made.lost == ()
    chat_request(made.body)
    start = made.body.index(b'"messages":') + len(b'"messages":')
    return made.body[start : made.body.rindex(b',"stream":')]


@given(st.lists(turns, min_size=1, max_size=3), turns, user_items)
def test_k3_a_longer_history_begins_with_the_shorter_one(
    before: list[list[dict[str, Any]]], turn: list[dict[str, Any]], last: dict[str, Any]
) -> None:
    user = {"type": "message", "role": "user", "content": "first"}
    items = [user, *(item for each in before for item in each), {**user, "content": "go on"}]
    shorter = messages(items)
    assistant = [item for item in turn if item.get("role") not in ("user", "developer")]
    longer = messages([*items, *assistant, last])
    assert longer.startswith(shorter[:-1] + b",")
    assert messages(items) == shorter


@given(st.lists(turns, min_size=1, max_size=3))
def test_chat_and_back_says_the_same(history: list[list[dict[str, Any]]]) -> None:
    # Reasoning goes nowhere on its way back.
    items = [item for each in history for item in each if item["type"] != "reasoning"]
    chat = to_chat(json.dumps({"model": "m", "input": [{"role": "user", "content": "x"}, *items]}).encode())
    back = from_chat(chat.body)
    assert back.lost == ()
    again = to_chat(back.body)

    assert json.loads(again.body)["messages"] == json.loads(chat.body)["messages"]
