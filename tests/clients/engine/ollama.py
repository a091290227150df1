"""The scripted engine's Ollama chat and generate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.clients.engine.script import Offer, Step, Turn
from tests.clients.engine.sending import Events, line, pieces

__all__ = ["ollama_events", "ollama_turn", "ollama_whole"]


def ollama_turn(body: Mapping[str, Any]) -> Turn:
    """Read a chat or generate request. Raises KeyError or TypeError for one that is none."""
    messages = body["messages"] if "messages" in body else [{"role": "user", "content": body.get("prompt", "")}]
    form = body.get("format")
    return Turn(
        model=body["model"],
        stream=body.get("stream") is not False,
        text="\n".join(message.get("content") or "" for message in messages),
        offers=tuple(
            Offer(tool["function"]["name"], tool["function"].get("parameters") or {})
            for tool in body.get("tools") or ()
        ),
        rounds=sum(message["role"] == "assistant" and bool(message.get("tool_calls")) for message in messages),
        results=tuple(message["content"] for message in messages if message["role"] == "tool"),
        schema=form if isinstance(form, dict) else {"type": "object"} if form == "json" else None,
    )


def _said(turn_is_chat: bool, **members: Any) -> dict[str, Any]:
    if turn_is_chat:
        return {"message": {"role": "assistant", "content": "", **members}}
    return {"response": members.get("content", ""), **{k: v for k, v in members.items() if k == "thinking"}}


def _calls(step: Step) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "function": {"index": index, "name": call.name, "arguments": json.loads(call.arguments)}}
        for index, call in enumerate(step.calls)
    ]


def _head(turn: Turn) -> dict[str, Any]:
    return {"model": turn.model, "created_at": "2027-01-15T08:00:00.123456789Z"}


def _tail(step: Step) -> dict[str, Any]:
    return {
        "done": True,
        "done_reason": "stop",
        "total_duration": 900_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": step.prompt_tokens,
        "prompt_eval_duration": 100_000_000,
        "eval_count": step.output_tokens,
        "eval_duration": 700_000_000,
    }


def ollama_whole(turn: Turn, step: Step, *, chat: bool) -> dict[str, Any]:
    """The answer in one piece."""
    members: dict[str, Any] = {"content": step.text}
    if step.thought:
        members["thinking"] = step.thought
    if step.calls:
        members["tool_calls"] = _calls(step)
    return {**_head(turn), **_said(chat, **members), **_tail(step)}


def ollama_events(turn: Turn, step: Step, *, chat: bool) -> Events:
    """The answer as lines."""
    for piece in pieces(step.thought):
        yield line({**_head(turn), **_said(chat, content="", thinking=piece), "done": False})
    for piece in pieces(step.text):
        yield line({**_head(turn), **_said(chat, content=piece), "done": False})
    for call in _calls(step):  # whole calls, one a line
        yield line({**_head(turn), **_said(chat, content="", tool_calls=[call]), "done": False})
    yield line({**_head(turn), **_said(chat, content=""), **_tail(step)})
