"""Build from a stream the whole message that the same engine gives without streaming.

The message is that of `message_start` with what came after it filled in, so members that nobody here knows stay, and
their order with them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.anthropic.stop_reason import finish_reason
from gateway.wire.anthropic.usage import MessagesTally
from gateway.wire.sse import data_of
from gateway.wire.usage import Usage
from gateway.wire.whole_calls import was_cut, whole_arguments

__all__ = ["MessageAssembler"]

_GROWN = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_ENDS = ("stop_reason", "stop_sequence")


class MessageAssembler:
    """Takes the events of one stream."""

    __slots__ = ("_blocks", "_inputs", "_message", "_stopped", "_tally", "_texts")

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._texts: dict[tuple[int, str], list[str]] = {}
        self._inputs: dict[int, list[str]] = {}
        self._tally = MessagesTally()
        self._stopped = False

    @property
    def usage(self) -> Usage | None:
        """What the exchange cost."""
        return self._tally.total

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended, in chat's words."""
        reason = self._message.get("stop_reason")
        return finish_reason(reason) if isinstance(reason, str) else None

    def feed(self, event: bytes) -> None:
        """Take one whole event. Comments and pings add nothing; raises StreamBroken for what is no event."""
        data = data_of(event)
        if data is None or data.strip() in (b"[DONE]", b"null", b""):
            return
        try:
            payload = msgspec.json.decode(data)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise StreamBroken("the engine sent an event that can't be read") from error
        try:
            self._take(payload)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise StreamBroken("the engine sent an event of a shape that no answer has") from error

    def _take(self, payload: dict[str, Any]) -> None:
        kind = payload.get("type")
        if kind == "message_start":
            self._message = dict(payload["message"])
            self._tally.add(self._message.get("usage"))
        elif kind == "content_block_start":
            self._blocks[_index(payload)] = dict(payload["content_block"])
        elif kind == "content_block_delta":
            self._grow(_index(payload), payload["delta"])
        elif kind == "message_delta":
            self._end(payload.get("delta") or {}, payload.get("usage") or {})
        elif kind == "message_stop":
            self._stopped = True

    def _grow(self, index: int, delta: dict[str, Any]) -> None:
        block = self._blocks[index]
        kind = delta.get("type")
        if kind == "input_json_delta":
            self._inputs.setdefault(index, []).append(_text(delta["partial_json"]))
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        elif kind in _GROWN:
            member = _GROWN[kind]
            self._texts.setdefault((index, member), [_text(block.get(member) or "")]).append(_text(delta[member]))

    def _end(self, delta: dict[str, Any], usage: dict[str, Any]) -> None:
        self._tally.add(usage)
        told = self._message.get("usage")
        self._message["usage"] = {**(told if isinstance(told, dict) else {}), **usage}
        self._message.update({name: delta[name] for name in _ENDS if name in delta})
        self._message.update({name: value for name, value in delta.items() if name not in _ENDS})

    def result(self) -> bytes:
        """The whole message as JSON. Raises StreamBroken when `message_stop` did not come: a cut is no answer."""
        if not self._stopped or not self._message:
            raise StreamBroken("the engine's answer ended before its last event")
        for (index, member), texts in self._texts.items():
            self._blocks[index][member] = "".join(texts)
        for index, pieces in self._inputs.items():
            try:
                self._blocks[index]["input"] = whole_arguments("".join(pieces))
            except StreamBroken:
                if not was_cut(self.finish_reason):
                    raise
                del self._blocks[index]  # the output budget cut it off
        message = {**self._message, "content": [block for _, block in sorted(self._blocks.items())]}
        try:
            return msgspec.json.encode(message)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise StreamBroken("the engine's answer can't be put together") from error


def _index(payload: dict[str, Any]) -> int:
    index = payload["index"]
    if not isinstance(index, int):
        raise TypeError("a block's index is a number")
    return index


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a piece of text is a string")
    return value
