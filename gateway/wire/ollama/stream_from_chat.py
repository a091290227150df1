"""A chat or text completions stream as the lines of /api/chat or /api/generate."""

from __future__ import annotations

from typing import Any

from gateway.wire.call_pieces import arguments_in, call_of, joined_name
from gateway.wire.chat_answer import Choice, Delta, read_chunk, text_of, usage_in
from gateway.wire.ollama.asked import Asked
from gateway.wire.ollama.done_reason import done_reason
from gateway.wire.ollama.logprobs import ollama_logprobs
from gateway.wire.ollama.tool_calls import ollama_calls
from gateway.wire.ollama.usage import figures
from gateway.wire.ollama.writing import head, json_of, said
from gateway.wire.translation import Stamp
from gateway.wire.usage import UsageTally

__all__ = ["OllamaWriter"]


class _Growing:
    """One tool call as it comes in pieces."""

    __slots__ = ("arguments", "id", "name", "number")

    def __init__(self, number: int | None) -> None:
        self.number = number
        self.id: str | None = None
        self.name: str | None = None
        self.arguments: list[str] = []

    @property
    def text(self) -> str:
        """The arguments so far."""
        return "".join(self.arguments)


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
        chunk = read_chunk(data)
        if chunk is None:
            return b""
        self._tally.add(usage_in(chunk), 0)
        return b"".join(self._line(choice) for choice in chunk.choices or () if not choice.index)

    def end(self) -> bytes:
        """The tool calls, and the last line: why the answer ended, and what it cost."""
        lines = b""
        if self._calls and not self._generate:
            calls = ollama_calls(self._calls, self._finish, self._stamp.id, lambda call: (call.name, call.text))
            if calls:
                lines = json_of({**self._head, **said(False, "", "", calls), "done": False}) + b"\n"
        last = {**self._head, **said(self._generate, ""), "done": True, "done_reason": done_reason(self._finish)}
        return lines + json_of({**last, **figures(self._tally.total)}) + b"\n"

    def _line(self, choice: Choice) -> bytes:
        delta = choice.delta or Delta(content=choice.text)
        if choice.finish_reason is not None:
            self._finish = choice.finish_reason
        for call in delta.calls:
            growing = call_of(self._calls, call, _Growing)
            growing.id = growing.id or call.id
            if not growing.name or not any(growing.arguments):  # it may come after its arguments
                growing.name = joined_name(growing.name, call)
            growing.arguments.append(arguments_in(call))
        text = (text_of(delta.content) if delta.content is not None else "") or delta.refusal or ""
        thought = delta.reasoning_content or delta.reasoning or ""
        probabilities = ollama_logprobs(choice.logprobs) if choice.logprobs is not None else []
        if not text and not thought and not probabilities:
            return b""
        line: dict[str, Any] = {**self._head, **said(self._generate, text, thought), "done": False}
        if probabilities:
            line["logprobs"] = probabilities
        return json_of(line) + b"\n"
