"""What a client says of the conversation that a request belongs to: a hint, which decides nothing by itself.

Headers were seen on the wire of the clients that are named; a body's own key is read with the body.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["HINT_LENGTH", "session_hint"]

HINT_LENGTH = 256
"""Characters; a longer key is no key."""
_HEADERS = (
    "x-session-id",  # opencode, and what vLLM reads itself
    "x-session-affinity",  # opencode
    "x-claude-code-session-id",
    "session-id",  # Codex
    "session_id",  # Codex, before 0.100
    "thread-id",  # Codex
    "x-openwebui-chat-id",
    "x-conversation-id",  # llama.cpp's web page
    "conversation-id",
    "x-litellm-session-id",
    "x-correlation-id",
)
_AGENTS = ("x-claude-code-agent-id",)
"""Which of several agents of one session it is; each has a prompt of its own."""


def session_hint(headers: Mapping[str, str], said: str | None) -> str | None:
    """The conversation's name: the body's own (`said`), else the first header that has one; None for none.

    `headers` has lower-case names. An agent of the session is told apart from the others.
    """
    hint = said or next((value for name in _HEADERS if (value := _usable(headers.get(name)))), None)
    if hint is None:
        return None
    agent = next((value for name in _AGENTS if (value := _usable(headers.get(name)))), None)
    return hint if agent is None else f"{hint}/{agent}"[:HINT_LENGTH]


def _usable(value: str | None) -> str | None:
    return value if value and len(value) <= HINT_LENGTH else None
