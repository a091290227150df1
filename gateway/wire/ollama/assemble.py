"""Build from a stream the whole answer that the same engine gives without streaming.

As Ollama's server does it (server/routes.go): the last line, with what all lines said in it. Members that nobody here
knows stay as they are.
"""

from __future__ import annotations

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.ollama.done_reason import finish_reason
from gateway.wire.ollama.lines import data_of
from gateway.wire.ollama.ollama_answer import read_ollama, said_in, usage_told
from gateway.wire.raw_members import encode, first_byte
from gateway.wire.usage import Usage

__all__ = ["OllamaAssembler"]

_Raw = msgspec.Raw
_MEMBERS = msgspec.json.Decoder(dict[str, _Raw])
_LIST = msgspec.json.Decoder(list[_Raw])
_GROWN = ("content", "thinking")


class OllamaAssembler:
    """Takes the lines of one stream, of /api/chat or /api/generate."""

    __slots__ = ("_calls", "_done", "_finish", "_last", "_logprobs", "_message", "_texts", "_thoughts", "_usage")

    def __init__(self) -> None:
        self._last: dict[str, _Raw] = {}
        self._message: dict[str, _Raw] = {}
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[_Raw] = []
        self._logprobs: list[_Raw] = []
        self._done = False
        self._finish: str | None = None
        self._usage: Usage | None = None

    @property
    def usage(self) -> Usage | None:
        """What the exchange cost."""
        return self._usage

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended, in chat's words."""
        return finish_reason(self._finish, calls=bool(self._calls)) if self._done else None

    def feed(self, event: bytes) -> None:
        """Take one whole line. Blank ones add nothing; raises StreamBroken for what is no line of an answer."""
        data = data_of(event)
        if data is None:
            return
        line = read_ollama(data)
        text, thought = said_in(line)
        self._texts.append(text)
        self._thoughts.append(thought)
        self._last = _members(data)
        if "message" in self._last and first_byte(self._last["message"]) == b"{":
            self._message = {**self._message, **_members(self._last["message"])}
            self._calls += _items(self._message.pop("tool_calls", None))
        self._logprobs += _items(self._last.pop("logprobs", None))
        if line.done:
            self._done = True
            self._finish = line.done_reason
            self._usage = usage_told(line)

    def result(self) -> bytes:
        """The whole answer as JSON. Raises StreamBroken when the last line did not come: a cut is no answer."""
        if not self._done:
            raise StreamBroken("the engine's answer ended before its last line")
        text, thought = "".join(self._texts), "".join(self._thoughts)
        whole: dict[str, object] = {**self._last}
        try:
            if self._message:
                kept = {key: value for key, value in self._message.items() if key not in _GROWN}
                message: dict[str, object] = {"role": "assistant", "content": text}
                if thought:
                    message["thinking"] = thought
                message |= kept
                if self._calls:
                    message["tool_calls"] = self._calls
                whole["message"] = message
            else:
                whole["response"] = text
                whole.pop("thinking", None)
                if thought:
                    whole["thinking"] = thought
            if self._logprobs:
                whole["logprobs"] = self._logprobs
            return encode(whole)
        except (UnicodeError, ValueError) as error:
            raise StreamBroken("the engine's answer can't be put together") from error


def _members(data: bytes | _Raw) -> dict[str, _Raw]:
    try:
        return _MEMBERS.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise StreamBroken("the engine sent a line that can't be read") from error


def _items(raw: _Raw | None) -> list[_Raw]:
    if raw is None or first_byte(raw) != b"[":
        return []
    try:
        return _LIST.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise StreamBroken("the engine sent a line that can't be read") from error
