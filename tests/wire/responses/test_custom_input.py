"""The text of a tool that takes text, out of function arguments that come in pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.responses.custom_input import CustomInput

texts = st.text(
    alphabet=st.one_of(st.characters(codec="utf-8", exclude_categories=("Cs",)), st.sampled_from('"\\\n😀'))
)


def taken(*fragments: str) -> tuple[list[str], str]:
    told = CustomInput()
    pieces = [*(told.add(fragment) for fragment in fragments), told.end()]
    assert "".join(pieces) == told.text
    told.text.encode()
    return pieces, told.text


@given(texts, st.booleans(), st.integers(1, 9), st.sampled_from(['{"input":', '{ "input" : ', '\n{"input":']))
def test_any_text_in_pieces_of_any_size(text: str, ascii_only: bool, size: int, head: str) -> None:
    arguments = head + json.dumps(text, ensure_ascii=ascii_only) + "}"
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    assert taken(*pieces)[1] == text


def test_it_is_told_while_it_arrives() -> None:
    assert taken('{"input":"', "abc", "d\\", "ne", '\\ud83d\\ude00"}')[0] == ["", "abc", "d", "\ne", "😀", ""]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"patch":"a"}', "a"),
        ('{"x":1,"input":"a"}', "a"),
        ('{"a":"x","b":"y"}', '{"a":"x","b":"y"}'),
        ('"just text"', "just text"),
        ("*** Begin Patch", "*** Begin Patch"),
        ("", ""),
        ('{"input":5}', '{"input":5}'),
        ('{"input":"two\nlines"}', "two\nlines"),
        ('{"input":"\\d+ and more of it"}', "\\d+ and more of it"),
        ('{"input":"half \\ud83d of one, and on"}', "half \ufffd of one, and on"),
        ('{"input":"cut he', "cut he"),
        ('{"input":"cut \\u00', "cut "),
        ('{"input":"a","more":"b"}', "a"),
        ('{"patch":"\\ud83d"}', "?"),
    ],
)
def test_what_models_write(arguments: str, text: str) -> None:
    assert taken(arguments)[1] == text
    assert taken(*arguments)[1] == text


@given(st.lists(st.text(max_size=12), max_size=8))
def test_nothing_is_too_odd(fragments: list[str]) -> None:
    taken(*fragments)
