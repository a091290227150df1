"""The messages of an Ollama chat as messages of chat completions."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.ollama.images import image_parts
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list

__all__ = ["ToChatTurns", "content_with"]


class _Message(msgspec.Struct, gc=False):
    role: str
    content: msgspec.Raw = NOTHING
    thinking: msgspec.Raw = NOTHING
    images: msgspec.Raw = NOTHING
    tool_calls: msgspec.Raw = NOTHING
    tool_name: str | None = None
    tool_call_id: str | None = None


class _Function(msgspec.Struct, gc=False):
    name: str
    arguments: msgspec.Raw = NOTHING


class _Call(msgspec.Struct, gc=False):
    function: _Function
    id: str | None = None


_MESSAGE = msgspec.json.Decoder(_Message)
_CALL = msgspec.json.Decoder(_Call)
_STRING = msgspec.json.Decoder(str)


class ToChatTurns:
    """Takes Ollama's messages in order; `messages` are those of chat, raw.

    Ollama's calls had no ids for long, and clients name the tool that a result is of. Ids are made from where a call
    stands, so that the same history gives the same bytes, and a result answers the first open call of its tool.
    """

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self._open: list[tuple[str, str]] = []  # id and name of calls without a result yet

    def take(self, raw: msgspec.Raw, path: str) -> None:
        """One message. Raises MalformedRequest with `param`."""
        message = read(_MESSAGE, raw, path)
        role = message.role.lower()
        parts = [] if is_null(message.images) else image_parts(message.images, f"{path}.images")
        content = content_with(parts, message.content, f"{path}.content")
        out = b'{"role":' + encode(role)
        if role == "tool":
            out += b',"tool_call_id":' + encode(self._answered(message))
            if message.tool_name:
                out += b',"name":' + encode(message.tool_name)
        out += b',"content":' + content
        if not is_null(message.thinking):
            thought = read(_STRING, message.thinking, f"{path}.thinking")
            if thought:
                out += b',"reasoning_content":' + encode(thought)
        if not is_null(message.tool_calls):
            calls = self._calls(message.tool_calls, f"{path}.tool_calls")
            if calls:
                out += b',"tool_calls":[' + b",".join(calls) + b"]"
        self.messages.append(out + b"}")

    def _calls(self, raw: msgspec.Raw, path: str) -> list[bytes]:
        found: list[bytes] = []
        self._open = []
        for index, item in enumerate(read_list(raw, path)):
            call = read(_CALL, item, f"{path}[{index}]")
            arguments = call.function.arguments
            if is_null(arguments):
                text = "{}"
            elif first_byte(arguments) == b"{":
                text = bytes(arguments).decode()
            else:
                at = f"{path}[{index}].function.arguments"
                raise MalformedRequest(f"{at} must be an object", param=at)
            call_id = call.id or f"call_{len(self.messages)}_{index}"
            self._open.append((call_id, call.function.name))
            function = b'{"name":' + encode(call.function.name) + b',"arguments":' + encode(text) + b"}"
            found.append(b'{"id":' + encode(call_id) + b',"type":"function","function":' + function + b"}")
        return found

    def _answered(self, message: _Message) -> str:
        waiting = self._open
        at = 0
        for index, (call_id, name) in enumerate(waiting):
            if message.tool_call_id == call_id or (not message.tool_call_id and name == message.tool_name):
                at = index
                break
        else:
            if message.tool_call_id:
                return message.tool_call_id
            if not waiting:
                return f"call_{len(self.messages)}_0"
        return waiting.pop(at)[0]


def content_with(parts: list[bytes], raw: msgspec.Raw, path: str) -> bytes:
    """The `content` of a chat message: the text as it came, after the pictures if there are any, as Ollama puts them.

    Raises MalformedRequest when it is no text.
    """
    if is_null(raw):
        raw = msgspec.Raw(b'""')
    elif first_byte(raw) != b'"':
        raise MalformedRequest(f"{path} must be a string", param=path)
    if not parts:
        return bytes(raw)
    if bytes(raw) != b'""':
        parts = [*parts, b'{"type":"text","text":' + bytes(raw) + b"}"]
    return b"[" + b",".join(parts) + b"]"
