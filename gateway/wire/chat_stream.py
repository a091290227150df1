"""Watch a stream of chat or completion chunks go by: what kind each event is, and what the client gets of it.

The hot path compares the two ends of an event with those of an earlier one, or else does a handful of substring tests.
A quote inside a JSON string is written `\\"`, so a marker with both quotes, like `"finish_reason"`, can't come from
generated text; a false alarm costs one JSON parse, nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gateway.wire.chunk_shape import ChunkShape, is_middle
from gateway.wire.error_body import error_in
from gateway.wire.model_alias import ModelAlias
from gateway.wire.sse import data_of, fields
from gateway.wire.stream_view import EventKind, Seen
from gateway.wire.usage import Usage, UsageTally, usage_of

__all__ = ["ChatStream"]

_NOT_JSON: dict[str, Any] = {
    "message": "the engine sent an event that is not JSON",
    "type": "upstream_error",
    "code": 502,
}
_TEXT_FIELDS = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call", "audio")


_UNREADABLE = object()
"""What bytes mean that are no JSON."""


class _AnyObject(msgspec.Struct):
    """Reads past every member, so decoding only checks the syntax."""


_OBJECT = msgspec.json.Decoder(_AnyObject)


class ChatStream:
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
        "done",
        "finish_reason",
        "surface",
        "tokens_seen",
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
        self.surface = surface
        self.tokens_seen = 0
        self.finish_reason: str | None = None
        self.done = False
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

    def see(self, event: bytes) -> Seen:
        """Look at one whole event. What clients can't read (no JSON, no UTF-8) is an ERROR."""
        if not event.isascii() and not _is_utf8(event):
            return Seen(b"", EventKind.ERROR, _NOT_JSON)
        known = self._shape.match(event)
        if known is None:
            if not (self.tokens_seen and is_middle(event) and _is_object(event[6:])):
                return self._look(event)
            known = event
            if self._alias is None:
                self._shape.learn(event, None)
            else:
                known = self._alias.event(event)
                self._shape.learn(event, self._alias.part)
        self.tokens_seen += 1
        return Seen(known, EventKind.TOKEN, None, True)

    def unfinished(self, tail: bytes) -> dict[str, Any] | None:
        """The error that the body's end tells although its event has no blank line; None when it is only a cut."""
        error = self._look(tail).error
        return None if error is _NOT_JSON else error

    def closing(self) -> bytes:
        """Nothing: what the engine sent was passed on as it came."""
        return b""

    def _look(self, event: bytes) -> Seen:
        data = data_of(event)
        if data is None:
            return self._without_data(event)
        bare = data.strip()
        if bare == b"[DONE]":
            self.done = True
            return Seen(event, EventKind.DONE)
        if bare in (b"null", b""):  # llama.cpp opens the stream of a prompt list with null; SDKs stumble over both
            return Seen(b"", EventKind.OTHER)
        payload = _json(data)
        if payload is _UNREADABLE:
            return Seen(b"", EventKind.ERROR, _NOT_JSON)
        error = error_in(payload)
        if error is None and fields(event, b"event") == [b"error"]:
            error = {"message": "", **payload} if isinstance(payload, dict) else {"message": str(payload)}
        if error is not None:
            return Seen(b"", EventKind.ERROR, error)
        if not isinstance(payload, dict):
            return Seen(event, EventKind.OTHER)
        return self._chunk(event, payload)

    def _without_data(self, event: bytes) -> Seen:
        # llama.cpp builds through 2025 wrote `error: {...}`; some proxies put a bare JSON body into an event stream.
        for text in fields(event, b"error"):
            payload = _json(text)
            told = payload if isinstance(payload, dict) else {"message": text.decode("utf-8", "replace")}
            return Seen(b"", EventKind.ERROR, error_in(told) or told)
        bare = event.strip()
        if not bare.startswith(b"{"):
            return Seen(event, EventKind.COMMENT)
        error = error_in(_json(bare))
        return Seen(event, EventKind.OTHER) if error is None else Seen(b"", EventKind.ERROR, error)

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


def _json(data: bytes) -> object:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    try:  # NaN and numbers past 64 bits, which engines written in Python send and SDKs read
        return json.loads(data)
    except (ValueError, RecursionError):
        return _UNREADABLE


def _is_object(data: bytes) -> bool:
    try:
        _OBJECT.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _is_utf8(event: bytes) -> bool:
    try:
        event.decode()
    except UnicodeDecodeError:
        return False
    return True
