"""The stream of an engine that goes on with another's answer, as that one would have gone on: one head, one usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.wire.engine_json import json_of
from gateway.wire.sse import data_of
from gateway.wire.usage import Usage, usage_of

__all__ = ["HEAD", "RestOfStream", "choice_of"]

HEAD = ("id", "object", "created", "model", "system_fingerprint")
"""What all chunks of one answer have in common."""
_OFF_TRACK = {"error": {"message": "the answer did not go on where it had broken off", "type": "upstream_error"}}
_AS_CHAT = ("text", "stop_reason", "token_ids", "prompt_token_ids", "prompt_logprobs", "routed_experts")
"""What a choice of a text completion has and one of a chat has not."""


class RestOfStream:
    """Mends events. `surface` and `head` are those of the stream that began the answer.

    `tail` is white space that the client has and this engine says again; `given`: tokens of the answer that it was
    given, which are no prompt to the client. `resumed`: how often the answer went on; its last chunk tells. `told`: the
    usage of this engine's own part.
    """

    __slots__ = ("_given", "_head", "_resumed", "_surface", "_tail", "told")

    def __init__(self, surface: str, head: Mapping[str, Any], tail: str, given: int, resumed: int) -> None:
        self._surface = surface
        self._head = head
        self._tail = tail
        self._given = given
        self._resumed = resumed
        self.told: Usage | None = None

    def mended(self, event: bytes) -> bytes:
        """An event as the first engine would have sent it; empty: nothing for the client."""
        data = data_of(event)
        payload = json_of(data) if data is not None else None
        if not isinstance(payload, dict) or "error" in payload:
            return event
        usage = usage_of(payload)
        if usage is not None:
            self._count(payload, usage)
        payload.pop("timings", None)  # of this engine's part only
        choice = choice_of(payload)
        if choice is not None:
            if self._surface == "chat" and "delta" not in choice:
                _to_chat(choice)
            part, name = _part(choice)
            part.pop("role", None)
            if not self._follows(part, name):
                return _event(_OFF_TRACK)
            if choice.get("finish_reason") is not None:
                payload["kvgate"] = {"continued": self._resumed}
            elif not part.get(name) and not any(value for key, value in part.items() if part is not choice):
                return b""
        for name in HEAD:
            if name in self._head:
                payload[name] = self._head[name]
            else:
                payload.pop(name, None)
        return _event(payload)

    def _follows(self, part: dict[str, Any], name: str) -> bool:
        """Take out what the client has already; False where the text goes on otherwise."""
        text, tail = part.get(name), self._tail
        if not tail or not isinstance(text, str) or not text:
            return True
        if text.startswith(tail):
            part[name], self._tail = text[len(tail) :], ""
        elif tail.startswith(text):
            part[name], self._tail = "", tail[len(text) :]
        else:
            return False
        return True

    def _count(self, payload: dict[str, Any], usage: Usage) -> None:
        prompt = max(1, (usage.prompt_tokens or 0) - self._given)
        cached = None if usage.cached_tokens is None else min(usage.cached_tokens, prompt)
        self.told = Usage(prompt, usage.completion_tokens, cached, usage.prompt_seconds, usage.decode_seconds)
        told = payload.get("usage")
        if not isinstance(told, dict):
            return
        output = self._given + (usage.completion_tokens or 0)
        told |= {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
        details = told.get("prompt_tokens_details")
        if isinstance(details, dict) and cached is not None and details.get("cached_tokens") is not None:
            details["cached_tokens"] = cached


def choice_of(payload: Mapping[str, Any]) -> dict[str, Any] | None:
    """The one choice of a chunk, None where it has none."""
    choices = payload.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def _to_chat(choice: dict[str, Any]) -> None:
    text = choice.get("text")
    for name in _AS_CHAT:
        choice.pop(name, None)
    choice["delta"] = {"content": text} if text else {}


def _part(choice: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Where a choice has its text, and under what name."""
    delta = choice.get("delta")
    return (delta, "content") if isinstance(delta, dict) else (choice, "text")


def _event(payload: Mapping[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(payload) + b"\n\n"
