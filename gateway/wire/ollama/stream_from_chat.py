"""A chat or text completions stream as the lines of /api/chat or /api/generate."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.ollama.asked import Asked
from gateway.wire.ollama.chat_answer import Call, Choice, Message, read_chat, text_of, usage_in
from gateway.wire.ollama.done_reason import done_reason
from gateway.wire.ollama.logprobs import ollama_logprobs
from gateway.wire.ollama.tool_calls import ollama_call
from gateway.wire.ollama.usage import figures
from gateway.wire.ollama.writing import head, json_of, said
from gateway.wire.translation import Stamp
from gateway.wire.usage import UsageTally

__all__ = ["OllamaWriter"]

_NO_CHUNK = (b"[DONE]", b"null", b"")
_MOST_CALLS = 1024
"""Tool calls of one answer; more are no answer of a model."""


class _Growing:
    """One tool call as it comes in pieces."""

    __slots__ = ("arguments", "id", "name", "number")

    def __init__(self, number: int | None) -> None:
        self.number = number
        self.id: str | None = None
        self.name: str | None = None
        self.arguments: list[str] = []


class OllamaWriter:
    """Writes lines as chat chunks arrive; `context` is what the request's translation gave. A StreamWriter.

    Ollama sends a tool call whole, its arguments an object, so calls are kept until the answer has ended.
    """

    __slots__ = ("_calls", "_finish", "_generate", "_head", "_stamp", "_tally")

    def __init__(self, context: object, stamp: Stamp) -> None:
        self._generate = isinstance(context, Asked) and context.generate
        self._stamp = stamp
        self._head = head(stamp)
        self._calls: list[_Growing] = []
        self._finish: str | None = None
        self._tally = UsageTally()

    def feed(self, data: bytes) -> bytes:
        """Take one chunk's JSON; return the lines that it gives. Raises StreamBroken for what is no chunk."""
        if data.strip() in _NO_CHUNK:
            return b""
        chunk = read_chat(data)
        if chunk.usage is not None or chunk.timings is not None:
            self._tally.add(usage_in(chunk), 0)
        return b"".join(self._line(choice) for choice in chunk.choices or () if not choice.index)

    def end(self) -> bytes:
        """The tool calls, and the last line: why the answer ended, and what it cost."""
        lines = b""
        if self._calls and not self._generate:
            calls = [
                ollama_call(index, call.id or f"call_{self._stamp.id}_{index}", call.name, "".join(call.arguments))
                for index, call in enumerate(self._calls)
            ]
            lines = json_of({**self._head, **said(False, "", "", calls), "done": False}) + b"\n"
        last = {**self._head, **said(self._generate, ""), "done": True, "done_reason": done_reason(self._finish)}
        return lines + json_of({**last, **figures(self._tally.total)}) + b"\n"

    def _line(self, choice: Choice) -> bytes:
        delta = choice.delta or Message(content=choice.text)
        if choice.finish_reason is not None:
            self._finish = choice.finish_reason
        for call in delta.tool_calls or ():
            self._grow(call)
        text = (text_of(delta.content) if delta.content is not None else "") or delta.refusal or ""
        thought = delta.reasoning_content or delta.reasoning or ""
        probabilities = ollama_logprobs(choice.logprobs) if choice.logprobs is not None else []
        if not text and not thought and not probabilities:
            return b""
        line: dict[str, Any] = {**self._head, **said(self._generate, text, thought), "done": False}
        if probabilities:
            line["logprobs"] = probabilities
        return json_of(line) + b"\n"

    def _grow(self, call: Call) -> None:
        function = call.function
        name = function.name if function is not None else None
        growing = self._call_of(call, name)
        growing.id = growing.id or call.id
        growing.name = growing.name or name
        arguments = function.arguments if function is not None else None
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        if isinstance(arguments, str):
            growing.arguments.append(arguments)
        elif arguments is not None:
            raise StreamBroken("the engine sent arguments that are no text")

    def _call_of(self, call: Call, name: str | None) -> _Growing:
        for growing in reversed(self._calls):
            if call.index is None:  # some engines leave it out: what has neither an id nor a name goes on
                if (call.id == growing.id) if call.id is not None else not name:
                    return growing
            elif call.index == growing.number:
                if call.id and name and growing.id and call.id != growing.id:
                    break  # some have numbered every call 0
                return growing
        if len(self._calls) >= _MOST_CALLS:
            raise StreamBroken(f"the engine sent more than {_MOST_CALLS} tool calls")
        self._calls.append(_Growing(call.index))
        return self._calls[-1]
