"""The messages of a chat request as the system prompt and the turns of messages.

Turns alternate there: tool results and what the user says next are one turn, and so are two answers in a row. Empty
texts are refused there and left out here.
"""

from __future__ import annotations

import re

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.anthropic.chat_parts import blocks_of, text_block
from gateway.wire.anthropic.parts import SEPARATOR
from gateway.wire.json_object import is_object
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list

__all__ = ["ChatTurns"]

_ODD = re.compile(r"[^a-zA-Z0-9_-]")


class _Message(msgspec.Struct, gc=False):
    role: str
    content: msgspec.Raw = NOTHING
    tool_calls: msgspec.Raw = NOTHING
    tool_call_id: str | None = None
    function_call: msgspec.Raw = NOTHING
    refusal: str | None = None


class _Function(msgspec.Struct, gc=False):
    name: str
    arguments: str = ""


class _Call(msgspec.Struct, gc=False):
    id: str
    function: _Function | None = None


_MESSAGE = msgspec.json.Decoder(_Message)
_CALL = msgspec.json.Decoder(_Call)


class ChatTurns:
    """Takes chat messages in order. `system` are texts; `turns` are roles with their blocks, raw."""

    def __init__(self, lost: Lost) -> None:
        self.system: list[str] = []
        self.turns: list[tuple[str, list[bytes]]] = []
        self._lost = lost

    def take(self, raw: msgspec.Raw, path: str) -> None:
        """One chat message. Raises MalformedRequest with `param`."""
        message = read(_MESSAGE, raw, path)
        if message.role in ("system", "developer"):
            self._instruct(message, path)
        elif message.role == "user":
            self._add("user", blocks_of(message.content, f"{path}.content", self._lost))
        elif message.role == "assistant":
            self._answered(message, path)
        elif message.role == "tool":
            self._add("user", [self._result(message, path)])
        elif message.role == "function":  # has no id that would say which call it answers
            self._lost.add(f"{path}.role=function")
        else:
            raise MalformedRequest(
                f"{path}.role: must be system, developer, user, assistant or tool", param=f"{path}.role"
            )

    def end(self) -> None:
        """All messages are there: an answer that is to be gone on with must not end with a space."""
        if self.turns and self.turns[-1][0] == "assistant":
            blocks = self.turns[-1][1]
            while blocks and (text := _text_in(blocks[-1])) is not None:
                blocks.pop()
                if text.rstrip():
                    blocks.append(text_block(text.rstrip()))
                    break
            if not blocks:
                self.turns.pop()

    def _add(self, role: str, blocks: list[bytes]) -> None:
        if not blocks:
            return
        if self.turns and self.turns[-1][0] == role:
            self.turns[-1][1].extend(blocks)
        else:
            self.turns.append((role, blocks))

    def _instruct(self, message: _Message, path: str) -> None:
        texts = [_text_in(block) for block in blocks_of(message.content, f"{path}.content", self._lost)]
        known = [text for text in texts if text is not None]
        if len(known) < len(texts):
            self._lost.add(f"{path}.content")
        if not self.turns:
            self.system += known
        elif known:  # in place, so that what came before keeps its cache entry; only new models take a system turn
            self._add("user", [text_block(f"<system-reminder>\n{SEPARATOR.join(known)}\n</system-reminder>")])

    def _answered(self, message: _Message, path: str) -> None:
        blocks = blocks_of(message.content, f"{path}.content", self._lost)
        if message.refusal:
            blocks.append(text_block(message.refusal))
        if not is_null(message.function_call):
            self._lost.add(f"{path}.function_call")
        if not is_null(message.tool_calls):
            for index, raw in enumerate(read_list(message.tool_calls, f"{path}.tool_calls")):
                at = f"{path}.tool_calls[{index}]"
                call = read(_CALL, raw, at)
                if call.function is None:
                    self._lost.add(f"{at}.type")
                else:
                    blocks.append(_tool_use(call.id, call.function))
        self._add("assistant", blocks)

    def _result(self, message: _Message, path: str) -> bytes:
        if message.tool_call_id is None:
            at = f"{path}.tool_call_id"
            raise MalformedRequest(f"{at} is required", param=at, code="missing_required_parameter")
        block = b'{"type":"tool_result","tool_use_id":' + encode(_allowed(message.tool_call_id))
        if first_byte(message.content) == b'"':
            return block + b',"content":' + bytes(message.content) + b"}"
        blocks = blocks_of(message.content, f"{path}.content", self._lost)
        return block + b',"content":[' + b",".join(blocks) + b"]}"


def _tool_use(call_id: str, function: _Function) -> bytes:
    arguments = function.arguments.strip() or "{}"
    if not is_object(arguments):  # a model's mistake; the history goes on with it
        arguments = '{"arguments":' + encode(function.arguments).decode() + "}"
    return (
        b'{"type":"tool_use","id":'
        + encode(_allowed(call_id))
        + b',"name":'
        + encode(function.name)
        + b',"input":'
        + arguments.encode()
        + b"}"
    )


def _allowed(call_id: str) -> str:
    """The id in the letters that Anthropic takes; engines use others (`functions.get_time:0`)."""
    return _ODD.sub("_", call_id) or "_"


class _Text(msgspec.Struct, gc=False):
    type: str
    text: str | None = None


_TEXT = msgspec.json.Decoder(_Text)


def _text_in(block: bytes) -> str | None:
    if not block.startswith(b'{"type":"text"'):
        return None
    return _TEXT.decode(block).text
