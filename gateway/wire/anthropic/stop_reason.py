"""Why an answer ended: chat's `finish_reason` and the `stop_reason` of messages."""

from __future__ import annotations

from gateway.wire.chat_answer import Choice
from gateway.wire.gave_up import gave_up

__all__ = ["finish_reason", "stop_reason", "stopped_by"]

_TO_MESSAGES = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
_TO_CHAT = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def stop_reason(finish: str | None, *, calls: bool, refused: bool = False, stopped_by: str | None = None) -> str:
    """The stop_reason for a finish_reason.

    calls: the answer has tool calls. Engines end an answer with a forced tool call with "stop" too; clients run tools
    only on "tool_use". refused: the answer is a refusal. stopped_by: the stop sequence that was met, if the
    engine told.
    """
    if refused:
        return "refusal"
    reason = _TO_MESSAGES.get(finish or "stop", "end_turn")
    if reason in ("end_turn", "tool_use"):
        if calls:
            return "tool_use"
        return "end_turn" if stopped_by is None else "stop_sequence"
    return reason


def finish_reason(reason: str | None) -> str | None:
    """The finish_reason for a stop_reason: "stop" for one that is not known, itself where the engine gave up."""
    return reason if reason is None or gave_up(reason) else _TO_CHAT.get(reason, "stop")


def stopped_by(choice: Choice, stops: tuple[str, ...]) -> str | None:
    """The stop sequence that ended the choice, where the engine tells."""
    for told in (choice.stop_reason, choice.matched_stop):
        if isinstance(told, str) and told in stops:
            return told
    return None
