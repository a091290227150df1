from __future__ import annotations

import json

import pytest

from gateway.core.steadying import NAMED, rule
from gateway.wire.steadying import steadied

CLAUDE = rule(*NAMED["claude-code-attribution"])
LINE = "x-anthropic-billing-header: cc_version=2.1.197.{}; cc_entrypoint=cli; cch={};"


def messages(mark: str) -> bytes:
    line = LINE.format(mark, mark)
    return (
        b'{"model" : "m",\n "system":[{"type":"text","text":"' + line.encode() + b'"} , {"cache_control":{"type":'
        b'"ephemeral"},"type":"text", "text":"You are \\u00e9 caf\xc3\xa9."}],"zebra":1.0,"messages":[{"role":"user",'
        b'"content":"x-anthropic-billing-header: mine"}]}'
    )


def test_claude_codes_first_line_goes_and_no_other_byte_changes() -> None:
    one, other = steadied(messages("aaa"), [CLAUDE]), steadied(messages("bbb"), [CLAUDE])
    assert one == other
    part = b'{"type":"text","text":"' + LINE.format("aaa", "aaa").encode() + b'"} , '
    assert one == messages("aaa").replace(part, b"")


def test_the_line_goes_from_a_text_too() -> None:
    body = json.dumps({"model": "m", "system": LINE.format("a", "b") + "\nYou help.", "messages": []}).encode()
    assert json.loads(steadied(body, [CLAUDE]))["system"] == "You help."


@pytest.mark.parametrize("role", ["system", "developer"])
def test_messages_with_which_a_chat_begins_are_looked_through_and_others_are_not(role: str) -> None:
    now = rule(r"Time: .*", "Time: \\1")
    said = [
        {"role": role, "content": "Rules.\nTime: 10:15\nMore."},
        {"role": "system", "content": [{"type": "text", "text": "Time: 10:15"}]},
        {"role": "user", "content": "Time: 10:15"},
        {"role": "system", "content": "Time: 10:15"},
    ]
    found = json.loads(steadied(json.dumps({"messages": said}).encode(), [now]))["messages"]
    assert found[0]["content"] == "Rules.\nTime: \\1\nMore."
    assert found[1]["content"] == [{"type": "text", "text": "Time: \\1"}]
    assert found[2:] == said[2:]


def test_instructions_are_looked_through() -> None:
    body = b'{"instructions":"Time: 1","input":"Time: 1"}'
    assert steadied(body, [rule("Time: .*")]) == b'{"instructions":"","input":"Time: 1"}'


@pytest.mark.parametrize(
    "body", [b'{"messages":[{"role":"system","content":"none"}]}', b"{", b"[]", b'{"messages":7,"system":{"a":1}}', b""]
)
def test_what_no_rule_matches_or_nobody_can_read_stays(body: bytes) -> None:
    assert steadied(body, [CLAUDE]) is body
