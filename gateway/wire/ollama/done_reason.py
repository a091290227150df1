"""Why an answer ended: chat's `finish_reason` and Ollama's `done_reason`."""

from __future__ import annotations

from gateway.wire.gave_up import gave_up

__all__ = ["done_reason", "finish_reason"]


def done_reason(finish: str | None) -> str:
    """Ollama knows "stop" and "length" of answers; tool calls end with "stop" too."""
    return "length" if finish == "length" else "stop"


def finish_reason(done: object, *, calls: bool) -> str:
    """In the words of chat; old servers do not say why. calls: the answer has tool calls."""
    if isinstance(done, str) and gave_up(done):
        return done
    if done == "length":
        return "length"
    return "tool_calls" if calls else "stop"
