"""The messages of a chat request as those of an Ollama chat."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.ollama.images import base64_of
from gateway.wire.ollama.tool_calls import arguments_of
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list

__all__ = ["FromChatTurns"]

_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_SEPARATOR = "\n"
"""Between parts of one text, as vLLM puts it."""


class _Message(msgspec.Struct, gc=False):
    role: str
    content: msgspec.Raw = NOTHING
    reasoning_content: msgspec.Raw = NOTHING
    reasoning: msgspec.Raw = NOTHING
    tool_calls: msgspec.Raw = NOTHING
    tool_call_id: str | None = None
    function_call: msgspec.Raw = NOTHING
    refusal: str | None = None
    name: str | None = None


class _Part(msgspec.Struct, gc=False):
    type: str = "text"
    text: str | None = None
    refusal: str | None = None
    image_url: msgspec.Raw = NOTHING
    input_audio: msgspec.Raw = NOTHING


class _Url(msgspec.Struct, gc=False):
    url: str


class _Audio(msgspec.Struct, gc=False):
    data: str
    format: str = "wav"


class _Function(msgspec.Struct, gc=False):
    name: str
    arguments: str | None = None


class _Call(msgspec.Struct, gc=False):
    id: str | None = None
    function: _Function | None = None


_MESSAGE = msgspec.json.Decoder(_Message)
_PART = msgspec.json.Decoder(_Part)
_URL = msgspec.json.Decoder(_Url)
_AUDIO = msgspec.json.Decoder(_Audio)
_CALL = msgspec.json.Decoder(_Call)
_STRING = msgspec.json.Decoder(str)


class FromChatTurns:
    """Takes chat messages in order; `messages` are Ollama's, raw. What has no place there is added to `lost`."""

    def __init__(self, lost: Lost) -> None:
        self.messages: list[bytes] = []
        self._lost = lost
        self._names: dict[str, str] = {}  # of the tools, by the id of their last call

    def take(self, raw: msgspec.Raw, path: str) -> None:
        """One chat message. Raises MalformedRequest with `param`."""
        message = read(_MESSAGE, raw, path)
        role = _ROLES.get(message.role)
        if role is None:
            if message.role == "function":  # has no id that would say which call it answers
                self._lost.add(f"{path}.role=function")
                return
            at = f"{path}.role"
            raise MalformedRequest(f"{at} must be system, developer, user, assistant or tool", param=at)
        text, media = self._content(message.content, f"{path}.content")
        if text == b'""' and message.refusal:
            text = encode(message.refusal)
        out = b'{"role":"%b","content":%b' % (role.encode(), text)
        for thought in (message.reasoning_content, message.reasoning):
            if first_byte(thought) == b'"' and bytes(thought) != b'""':
                out += b',"thinking":' + bytes(thought)
                break
        if media:
            out += b',"images":[' + b",".join(media) + b"]"
        if not is_null(message.function_call):
            self._lost.add(f"{path}.function_call")
        if not is_null(message.tool_calls):
            calls = self._calls(message.tool_calls, f"{path}.tool_calls")
            if calls:
                out += b',"tool_calls":[' + b",".join(calls) + b"]"
        if role == "tool":
            name = message.name or self._names.get(message.tool_call_id or "")
            if name:
                out += b',"tool_name":' + encode(name)
            if message.tool_call_id:
                out += b',"tool_call_id":' + encode(message.tool_call_id)
        self.messages.append(out + b"}")

    def _calls(self, raw: msgspec.Raw, path: str) -> list[bytes]:
        found: list[bytes] = []
        for index, item in enumerate(read_list(raw, path)):
            call = read(_CALL, item, f"{path}[{index}]")
            if call.function is None:
                self._lost.add(f"{path}[{index}].type")
                continue
            known = b"" if not call.id else b'"id":' + encode(call.id) + b","
            if call.id:
                self._names[call.id] = call.function.name
            arguments = encode(arguments_of(call.function.arguments))
            function = b'{"index":%d,"name":%b,"arguments":%b}' % (index, encode(call.function.name), arguments)
            found.append(b"{" + known + b'"function":' + function + b"}")
        return found

    def _content(self, raw: msgspec.Raw, path: str) -> tuple[bytes, list[bytes]]:
        # The text, raw, and the pictures in it.
        if is_null(raw):
            return b'""', []
        if first_byte(raw) == b'"':
            return bytes(raw), []
        texts: list[str] = []
        media: list[bytes] = []
        for index, item in enumerate(read_list(raw, path)):
            at = f"{path}[{index}]"
            if first_byte(item) == b'"':  # engines take bare strings too
                texts.append(read(_STRING, item, at))
                continue
            part = read(_PART, item, at)
            if part.type in ("text", "refusal", "input_text", "output_text"):
                texts.append(part.text or part.refusal or "")
            elif (picture := _media(part, at)) is not None:
                media.append(picture)
            else:
                self._lost.add(f"{at}.type={part.type[:40]}")
        return encode(_SEPARATOR.join(texts)), media


def _media(part: _Part, path: str) -> bytes | None:
    if part.type == "image_url" and not is_null(part.image_url):
        at = f"{path}.image_url"
        bare = first_byte(part.image_url) == b'"'
        url = read(_STRING, part.image_url, at) if bare else read(_URL, part.image_url, at).url
        data = base64_of(url)
        return None if data is None else encode(data)
    if part.type == "input_audio" and not is_null(part.input_audio):
        sound = read(_AUDIO, part.input_audio, f"{path}.input_audio")
        return encode(sound.data) if sound.format == "wav" else None
    return None
