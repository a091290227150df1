"""Watch a stream of chat or completion chunks go by: what kind each event is, and what the client gets of it.

The hot path compares the two ends of an event with those of an earlier one, or else does a handful of substring tests.
A quote inside a JSON string is written `\\"`, so a marker with both quotes, like `"finish_reason"`, can't come from
generated text; a false alarm costs one JSON parse, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.errors import StreamBroken
from gateway.wire.chunk_shape import ChunkShape, is_middle
from gateway.wire.json_object import is_object
from gateway.wire.model_alias import ModelAlias
from gateway.wire.native_stream import NativeStream, payload_of, without_data
from gateway.wire.sse import data_of
from gateway.wire.stream_view import EventKind, Seen
from gateway.wire.usage import Usage, UsageTally, usage_of

__all__ = ["ChatStream"]

_TEXT_FIELDS = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call", "audio")


class ChatStream(NativeStream):
    """The state of one stream. `surface` is "chat" or "completions".

    model_alias: the name to show in place of the engine's, None to leave it. show_usage: the client asked for the
    usage-only chunk. choices: how many choices will come (n times prompts). prompts: see UsageTally.
    """

    __slots__ = (
        "_alias",
        "_choices",
        "_ended",
        "_last_ended",
        "_shape",
        "_show_usage",
        "_started",
        "_tally",
        "surface",
    )

    def __init__(
        self,
        surface: str,
        *,
        model_alias: str | None = None,
        show_usage: bool = True,
        usage_of: Callable[[Mapping[str, Any]], Usage | None] = usage_of,
        choices: int = 1,
        prompts: int = 1,
    ) -> None:
        super().__init__()
        self.surface = surface
        self._alias = None if model_alias is None else ModelAlias(model_alias)
        self._shape = ChunkShape()
        self._show_usage = show_usage
        self._choices = choices
        self._started: set[int] = set()
        self._ended: set[int] = set()
        self._last_ended = 0
        self._tally = UsageTally(prompts, usage_of)

    @property
    def usage(self) -> Usage | None:
        """The usage so far, summed over choices, or None when the engine told none."""
        return self._tally.total

    @property
    def terminal(self) -> bool:
        """The answer is whole: `[DONE]` came, or a finish_reason for every choice."""
        return self.done or (len(self._ended) >= self._choices and self._started <= self._ended)

    def closing(self) -> bytes:
        """Nothing. Raises StreamBroken where a choice ended without saying why, which only `[DONE]` can hide."""
        if self.finish_reason is None or not self._started <= self._ended:
            raise StreamBroken("the engine's answer ended without saying why")
        return b""

    def _see(self, event: bytes) -> Seen:
        known = self._shape.match(event)
        if known is None:
            if not (self.tokens_seen and is_middle(event) and is_object(event[6:])):
                return self._look(event)
            known = event
            if self._alias is None:
                self._shape.learn(event, None)
            else:
                known = self._alias.event(event)
                self._shape.learn(event, self._alias.part)
        return self._token(known)

    def _look(self, event: bytes) -> Seen:
        data = data_of(event)
        if data is None:
            return without_data(event)
        bare = data.strip()
        if bare == b"[DONE]":
            self.done = True
            return Seen(event, EventKind.DONE)
        if bare in (b"null", b""):  # llama.cpp opens the stream of a prompt list with null; SDKs stumble over both
            return Seen(b"", EventKind.OTHER)
        payload = payload_of(event, data)
        return payload if isinstance(payload, Seen) else self._chunk(event, payload)

    def _chunk(self, event: bytes, payload: dict[str, Any]) -> Seen:
        choices = payload.get("choices")
        token = role = finished = False
        index = self._last_ended
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict):
                continue
            index = choice.get("index") or 0
            self._started.add(index)
            delta = choice.get("delta")
            if _has_text(choice, delta):
                token = True
            elif isinstance(delta, dict) and "role" in delta:
                role = True
            reason = choice.get("finish_reason")
            if reason is not None:
                finished = True
                self.finish_reason = str(reason)
                self._ended.add(index)
                self._last_ended = index
        self._tally.add(payload, index)
        forward = event if self._alias is None else self._alias.event(event)
        if token:
            self.tokens_seen += 1
        if finished:
            return Seen(forward, EventKind.FINISH, None, token)
        if token:
            return Seen(forward, EventKind.TOKEN, None, True)
        if choices == [] and isinstance(payload.get("usage"), dict):
            return Seen(forward if self._show_usage else b"", EventKind.USAGE)
        return Seen(forward, EventKind.ROLE if role else EventKind.OTHER)


def _has_text(choice: dict[str, Any], delta: object) -> bool:
    if isinstance(delta, dict):
        return any(delta.get(name) for name in _TEXT_FIELDS)
    return bool(choice.get("text"))
