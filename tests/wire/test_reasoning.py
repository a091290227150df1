"""What a request says about thinking, whatever its client's words."""

from __future__ import annotations

import json

import pytest

from gateway.wire.chat_request import parse_chat
from gateway.wire.reasoning import reasoning_of


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, ""),
        ({"reasoning_effort": "high"}, "high"),
        ({"reasoning_effort": "none"}, "none"),
        ({"reasoning_effort": "as hard as you can"}, "on"),
        ({"reasoning_effort": 3}, ""),
        ({"chat_template_kwargs": {"enable_thinking": True}}, "on"),
        ({"chat_template_kwargs": {"thinking": True}, "reasoning_effort": "low"}, "low"),
        ({"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "high"}, "none"),
        ({"chat_template_kwargs": {"reasoning_effort": "medium"}}, "medium"),
        ({"chat_template_kwargs": [1]}, ""),
        ({"reasoning_effort": None, "chat_template_kwargs": None}, ""),
    ],
)
def test_how_hard_to_think_is_one_of_few_words(members: dict[str, object], expected: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **members}
    assert parse_chat(json.dumps(body).encode()).reasoning == expected
    assert reasoning_of(members.get("reasoning_effort"), members.get("chat_template_kwargs")) == expected


@pytest.mark.parametrize(("kind", "expected"), [("json_schema", True), ("json_object", True), ("text", False)])
def test_an_answer_that_must_be_json(kind: str, expected: bool) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "response_format": {"type": kind}}
    assert parse_chat(json.dumps(body).encode()).json is expected
    del body["response_format"]
    assert parse_chat(json.dumps(body).encode()).json is False
