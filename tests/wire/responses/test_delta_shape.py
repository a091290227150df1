"""Deltas known by their ends are the same as those that are looked at in full."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.responses.delta_shape import DeltaShape
from gateway.wire.responses.stream import ResponsesStream
from gateway.wire.stream_view import EventKind, Seen

KIND = "response.output_text.delta"
LAYOUTS: dict[str, tuple[str, ...]] = {
    "after": ("content_index", "delta", "item_id", "sequence_number", "type"),
    "before": ("type", "sequence_number", "item_id", "delta"),
    "none": ("type", "item_id", "delta"),
    "last": ("type", "delta", "sequence_number"),
}
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def delta(layout: str, text: str, number: int, item: str = "msg_1", **more: Any) -> bytes:
    values = {"type": KIND, "content_index": 0, "delta": text, "item_id": item, "sequence_number": number}
    told = {key: values[key] for key in LAYOUTS[layout]} | more
    data = json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()
    return f"event: {KIND}\ndata: ".encode() + data + b"\n\n"


@layouts
def test_it_learns_from_one_and_knows_the_next(layout: str) -> None:
    shape = DeltaShape()
    assert not shape.match(delta(layout, "Hello", 5))
    shape.learn(delta(layout, "Hello", 5))
    for number in (6, 10, 999_999):
        assert shape.match(delta(layout, 'wor"ld\n', number))
    assert not shape.match(delta(layout, "", 7))
    assert not shape.match(delta(layout, "x", 7, more=5))
    if "item_id" in LAYOUTS[layout]:
        assert not shape.match(delta(layout, "x", 7, item="msg_2"))


@layouts
def test_a_number_that_is_none_is_no_delta(layout: str) -> None:
    shape = DeltaShape()
    shape.learn(delta(layout, "Hello", 5))
    if layout != "none":
        assert not shape.match(delta(layout, "Hello", 5).replace(b":5", b":null"))
        assert not shape.match(delta(layout, "Hello", 5).replace(b":5", b":5e3"))


@layouts
@given(st.lists(st.tuples(st.text(max_size=6), st.sampled_from(["msg_1", "msg_2"])), max_size=12))
def test_every_delta_counts_once_however_it_is_known(layout: str, told: list[tuple[str, str]]) -> None:
    stream = ResponsesStream()
    for number, (text, item) in enumerate(told):
        event = delta(layout, text, number, item)
        assert stream.see(event) == Seen(event, EventKind.TOKEN if text else EventKind.OTHER, None, bool(text))
    assert stream.tokens_seen == sum(1 for text, _ in told if text)


def test_it_gives_up_where_no_two_are_alike() -> None:
    shape = DeltaShape()
    for number in range(9):
        event = delta("before", "x", number, obfuscation=f"{number}abc")
        assert not shape.match(event)
        shape.learn(event)
    known = delta("before", "x", 3, obfuscation="3abc")
    assert shape.match(known)  # of the last that it tried
