"""Build from a stream the whole answer that the same engine gives without streaming.

llama.cpp notices a closed connection in time only on a stream, so it is always asked for one. Members and their order
are those of its own non-stream answers; numbers, log probabilities and timings are passed on as raw JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.halves import Halves
from gateway.wire.sse import data_of
from gateway.wire.usage import Usage, UsageTally

__all__ = ["Assembler"]

_Raw = msgspec.Raw
_CHUNK = msgspec.json.Decoder(dict[str, _Raw])
_ORDER = ("created", "model", "system_fingerprint", "object", "usage", "id", "timings")
_NO_CHUNK = (b"[DONE]", b"null")
_ONLY_IN_STREAMS = ("prompt_progress",)


class _Logprobs(msgspec.Struct):
    content: list[_Raw] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: dict[str, Any] | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


_CHOICES = msgspec.json.Decoder(list[_Choice] | None)


class _Answer:
    """One choice as it grows."""

    __slots__ = ("fields", "finish_reason", "grown", "logprobs", "text", "tool_calls")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.fields: dict[str, Any] = {"role": "assistant"}
        self.grown: dict[str, list[str]] = {"content": []}  # text that comes in pieces
        self.tool_calls: dict[int, dict[str, Any]] = {}
        self.logprobs: list[_Raw] | None = None
        self.finish_reason: str | None = None


class Assembler:
    """Takes the events of one stream; `surface` is "chat" or "completions", `prompts` as for UsageTally."""

    __slots__ = ("_answers", "_halves", "_last_ended", "_surface", "_tally", "_top")

    def __init__(self, surface: str, *, prompts: int = 1) -> None:
        self._surface = surface
        self._answers: dict[int, _Answer] = {}
        self._top: dict[str, _Raw] = {}
        self._halves = Halves()
        self._last_ended = 0
        self._tally = UsageTally(prompts)

    @property
    def usage(self) -> Usage | None:
        """What the exchange cost, over all choices."""
        return self._tally.total

    @property
    def finish_reason(self) -> str | None:
        """Why the first choice ended."""
        first = self._answers.get(0)
        return None if first is None else first.finish_reason

    def feed(self, event: bytes) -> None:
        """Take one whole event. Comments and `[DONE]` add nothing; raises StreamBroken for what is no chunk."""
        data = data_of(event)
        if data is None or data.strip() in _NO_CHUNK:
            return
        try:
            chunk = _CHUNK.decode(self._halves.joined(data))
            choices = _CHOICES.decode(chunk.pop("choices", b"[]")) or []
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise StreamBroken("the engine sent a chunk that can't be read") from error
        try:
            for choice in choices:
                self._grow(choice)
        except (TypeError, AttributeError) as error:
            raise StreamBroken("the engine sent a chunk of a shape that no answer has") from error
        index = choices[-1].index if choices else self._last_ended
        for key in _ONLY_IN_STREAMS:
            chunk.pop(key, None)
        told: dict[str, Any] = {key: _figures(chunk[key]) for key in ("usage", "timings") if key in chunk}
        if told:
            self._tally.add(told, index)
            if index != 0:  # the whole answer tells the first choice's figures
                chunk = {key: value for key, value in chunk.items() if key not in told or key not in self._top}
        self._top.update(chunk)

    def _grow(self, choice: _Choice) -> None:
        answer = self._answers.setdefault(choice.index, _Answer())
        if choice.text:
            answer.text.append(choice.text)
        if choice.logprobs is not None and choice.logprobs.content is not None:
            answer.logprobs = (answer.logprobs or []) + choice.logprobs.content
        if choice.finish_reason is not None:
            answer.finish_reason = choice.finish_reason
            self._last_ended = choice.index
        for key, value in (choice.delta or {}).items():
            if key == "tool_calls" and isinstance(value, list):
                for call in value:
                    _merge_call(answer.tool_calls, call)
            elif key == "function_call" and isinstance(value, dict):  # the API before tool calls
                _merge_function(answer.fields.setdefault(key, {"name": "", "arguments": ""}), value)
            elif isinstance(value, str) and key != "role":
                answer.grown.setdefault(key, []).append(value)
            elif value is not None:
                answer.fields[key] = value

    def result(self) -> bytes:
        """The whole answer as JSON. Raises StreamBroken when a choice has no finish_reason: a cut is no answer."""
        answers = sorted(self._answers.items())
        if not answers or any(answer.finish_reason is None for _, answer in answers):
            raise StreamBroken("the engine's answer ended before its last event")
        shape = _chat_choice if self._surface == "chat" else _completion_choice
        whole: dict[str, Any] = {"choices": [shape(index, answer) for index, answer in answers]}
        top = self._top
        if "object" in top and self._surface == "chat":
            top["object"] = _Raw(b'"chat.completion"')
        whole.update({key: top[key] for key in _ORDER if key in top})
        whole.update({key: value for key, value in top.items() if key not in whole})
        return msgspec.json.encode(whole)


def _figures(raw: _Raw) -> object:
    """What the engine counted; nothing where the numbers are too big to be any."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.MsgspecError:
        return None


def _chat_choice(index: int, answer: _Answer) -> dict[str, Any]:
    grown = {key: "".join(value) for key, value in answer.grown.items()}
    message = {"role": answer.fields["role"], **grown, **answer.fields}
    if answer.tool_calls:
        message["tool_calls"] = [call for _, call in sorted(answer.tool_calls.items())]
    choice: dict[str, Any] = {"finish_reason": answer.finish_reason, "index": index, "message": message}
    if answer.logprobs is not None:
        choice["logprobs"] = {"content": answer.logprobs}
    return choice


def _completion_choice(index: int, answer: _Answer) -> dict[str, Any]:
    logprobs = None if answer.logprobs is None else {"content": answer.logprobs}
    text = "".join(answer.text)
    return {"text": text, "index": index, "logprobs": logprobs, "finish_reason": answer.finish_reason}


def _merge_call(calls: dict[int, dict[str, Any]], part: Mapping[str, Any]) -> None:
    index = part.get("index", 0)
    if not isinstance(index, int):
        raise TypeError("a tool call's index is a number")
    call = calls.setdefault(index, {"type": "function", "function": {"name": "", "arguments": ""}})
    _merge_function(call["function"], part.get("function") or {})
    if part.get("id"):
        call["id"] = part["id"]


def _merge_function(function: dict[str, Any], part: Mapping[str, Any]) -> None:
    function["name"] += part.get("name") or ""
    function["arguments"] += part.get("arguments") or ""
