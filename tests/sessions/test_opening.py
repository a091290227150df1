"""What a conversation is known by does not change with the clock."""

from __future__ import annotations

import json

import pytest

from gateway.tokens.measure import measure

CLAUDE = "x-anthropic-billing-header: cc_version=2.1.197.{mark}; cc_entrypoint=cli; cch={mark};"


def messages(mark: str) -> bytes:
    system = [{"type": "text", "text": CLAUDE.format(mark=mark)}, {"type": "text", "text": "You help. " * 400}]
    return json.dumps(
        {"model": "m", "max_tokens": 9, "system": system, "messages": [{"role": "user", "content": "Go."}]}
    ).encode()


def chat(system: str, *turns: str) -> bytes:
    roles = ("user", "assistant")
    said = [{"role": roles[index % 2], "content": text} for index, text in enumerate(turns)]
    return json.dumps({"model": "m", "messages": [{"role": "system", "content": system}, *said]}).encode()


def test_a_line_that_changes_at_the_head_is_looked_past() -> None:
    """Known failure K1."""
    one, other = measure("messages", messages("aaa"), b""), measure("messages", messages("bbb"), b"")
    assert one.chain.head != other.chain.head
    assert one.opening == other.opening


@pytest.mark.parametrize("padding", [0, 300])
def test_a_clock_in_the_system_prompt_is_looked_past(padding: int) -> None:
    """Known failure K2."""
    rules = "Be brief.\n" * (1 + padding)
    times = ("Monday, 1 September 2026, 9:59 AM", "Tuesday, 22 December 2026, 10:00 PM")
    found = [measure("chat", chat(f"Now: {time}\n{rules}Now: {time}", "Hello", *turns), b"").opening
             for time, turns in ((times[0], ()), (times[1], ("Hi.", "Go on")))]  # fmt: skip
    assert found[0] == found[1]


def test_other_rules_and_other_questions_are_other_conversations() -> None:
    one = measure("chat", chat("Be brief.", "Hello"), b"").opening
    assert measure("chat", chat("Be long.", "Hello"), b"").opening != one
    assert measure("chat", chat("Be brief.", "Good bye"), b"").opening != one


def test_conversations_on_one_long_system_prompt_are_placed_alike() -> None:
    one, other = (measure("chat", chat("Read this.\n" * 1000, ask), b"").opening for ask in ("a", "b"))
    assert one[0] == other[0]
    assert one[1] != other[1]
