"""The next turn of every recorded client is recognised as going on from the last, whatever moved around it."""

from __future__ import annotations

import pytest

from gateway.tokens.measure import Measured, measure
from gateway.wire.session_hint import session_hint
from tests.clients.captures import RECORDED, Captured, load

SURFACES = {"/v1/chat/completions": "chat", "/v1/responses": "responses", "/v1/messages": "messages"}


def asked(client: str, *numbers: int) -> list[tuple[Captured, Measured]]:
    found = {each.number: each for each in load(RECORDED / f"{client}.jsonl")}
    return [(found[number], measure(SURFACES[found[number].path], found[number].data(), b"salt")) for number in numbers]


def hint_of(one: tuple[Captured, Measured]) -> str | None:
    return session_hint({name.lower(): value for name, value in one[0].headers}, one[1].chat.session)


TURNS = [
    ("claude-code", 2, 3),  # its marks for the cache move with every turn
    ("claude-code", 5, 6),
    ("claude-code", 6, 7),
    ("claude-code", 9, 13),
    ("claude-code", 10, 12),  # a subagent
    ("codex", 0, 1),  # items have ids and states that change
    ("codex", 2, 3),
    ("codex", 3, 4),
    ("opencode", 1, 2),
    ("opencode", 7, 8),
    ("opencode", 8, 9),
    ("llm-cli", 2, 3),
    ("npm-sdks", 5, 6),
    ("openai-python", 4, 5),
    ("python-frameworks", 7, 8),
    ("python-frameworks", 9, 10),
]


@pytest.mark.parametrize(("client", "earlier", "later"), TURNS)
def test_a_later_turn_holds_the_whole_earlier_one(client: str, earlier: int, later: int) -> None:
    before, after = asked(client, earlier, later)
    shared = after[1].chain.common_bytes(before[1].chain)
    assert shared >= 0.99 * before[1].chain.total
    assert after[1].opening == before[1].opening


@pytest.mark.parametrize(
    ("client", "main", "others"),
    [("claude-code", 2, (1, 10)), ("opencode", 1, (0,))],
)
def test_titles_and_subagents_are_conversations_of_their_own(client: str, main: int, others: tuple[int, ...]) -> None:
    first, *rest = asked(client, main, *others)
    for other in rest:
        assert other[1].opening != first[1].opening


def test_clients_name_their_sessions() -> None:
    for client, of_one in (("claude-code", (2, 3)), ("codex", (2, 3, 4)), ("opencode", (7, 8, 9))):
        hints = {hint_of(each) for each in asked(client, *of_one)}
        assert len(hints) == 1, client
        assert None not in hints, client
    for client in ("aider", "llm-cli"):
        assert hint_of(asked(client, 1)[0]) is None


def test_an_agent_of_a_session_is_told_apart() -> None:
    main, agent = asked("claude-code", 9, 10)
    assert hint_of(main) is not None
    assert str(hint_of(agent)).startswith(f"{hint_of(main)}/")
