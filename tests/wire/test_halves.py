"""A character that comes in two events is one character."""

from __future__ import annotations

import json
import re

import pytest

from gateway.wire.assemble import Assembler
from gateway.wire.halves import Halves
from tests.wire.told_by_chat import DONE, TRANSLATED, chunk, streamed

FIRST, SECOND = "a\ud83d", "\ude00b"


def texts(out: bytes, member: str) -> str:
    """All texts under that name, one after the other."""
    found = re.findall(rb'"%b":("(?:[^"\\]|\\.)*")' % member.encode(), out)
    return "".join(json.loads(text) for text in found)


@pytest.mark.parametrize(
    ("surface", "member"),
    [("messages", "text"), ("responses", "delta"), ("ollama_chat", "content"), ("ollama_generate", "response")],
)
def test_e6_half_a_character_waits_for_the_other(surface: str, member: str) -> None:
    out = streamed(surface, chunk({"content": FIRST}), chunk({"content": SECOND}), chunk({}, "stop"), DONE)
    assert texts(out, member) == "a😀b"
    assert "\ufffd" not in out.decode()


@pytest.mark.parametrize("surface", TRANSLATED)
def test_e6_it_waits_for_its_own_kind_and_not_for_ever(surface: str) -> None:
    between = chunk({"reasoning_content": "hm"}), chunk({"content": ""}), chunk({"content": SECOND})
    out = streamed(surface, chunk({"content": FIRST}), *between, chunk({}, "stop"), DONE)
    assert "😀b" in out.decode()
    alone = streamed(surface, chunk({"content": FIRST}), chunk({"content": "c"}), chunk({}, "stop"), DONE)
    assert "\ufffdc" in alone.decode()
    assert "\ufffd" not in streamed(surface, chunk({"content": FIRST}), chunk({}, "stop"), DONE).decode()


def test_e6_chat_that_is_put_together_has_the_whole_character() -> None:
    assembler = Assembler("chat")
    for event in (chunk({"content": FIRST}), chunk({"content": SECOND}), chunk({}, "stop")):
        assembler.feed(event)
    assert json.loads(assembler.result())["choices"][0]["message"]["content"] == "a😀b"


def test_what_is_whole_stays_as_it_came() -> None:
    halves = Halves()
    for data in (b'{"a" :"\\ud83d\\ude00"}', b"[1e5]", b'{"a":"\\ud83d', "{'ä'}".encode()):
        assert halves.joined(data) is data


def test_few_are_kept() -> None:
    halves = Halves()
    many = json.dumps([f"{number}\ud83d" for number in range(20)]).encode()
    assert json.loads(halves.joined(many)) == [str(number) + "\ufffd" * (number > 15) for number in range(20)]
