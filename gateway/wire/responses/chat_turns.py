"""The messages of a chat request as the items of a response's input."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list

__all__ = ["ChatTurns"]


class _Message(msgspec.Struct, gc=False):
    role: str
    content: msgspec.Raw = NOTHING
    tool_calls: msgspec.Raw = NOTHING
    function_call: msgspec.Raw = NOTHING
    tool_call_id: str | None = None
    refusal: str | None = None


class _Part(msgspec.Struct, gc=False):
    type: str = "text"
    text: str | None = None
    refusal: str | None = None
    image_url: msgspec.Raw = NOTHING
    file: msgspec.Raw = NOTHING
    input_audio: msgspec.Raw = NOTHING


class _Url(msgspec.Struct, gc=False):
    url: str
    detail: str | None = None


class _File(msgspec.Struct, gc=False):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class _Function(msgspec.Struct, gc=False):
    name: str
    arguments: str = ""


class _Custom(msgspec.Struct, gc=False):
    name: str
    input: str = ""


class _Call(msgspec.Struct, gc=False):
    id: str
    type: str = "function"
    function: msgspec.Raw = NOTHING
    custom: msgspec.Raw = NOTHING


_MESSAGE = msgspec.json.Decoder(_Message)
_STRING = msgspec.json.Decoder(str)
_PART = msgspec.json.Decoder(_Part)
_URL = msgspec.json.Decoder(_Url)
_FILE = msgspec.json.Decoder(_File)
_CALL = msgspec.json.Decoder(_Call)
_FUNCTION = msgspec.json.Decoder(_Function)
_CUSTOM = msgspec.json.Decoder(_Custom)


class ChatTurns:
    """Takes the messages in order; `items` are those of the input, raw. Each depends on the messages before only."""

    def __init__(self, lost: Lost) -> None:
        self.items: list[bytes] = []
        self._lost = lost
        self._custom: set[str] = set()  # ids of calls of custom tools: their outputs are of another kind

    def take(self, raw: msgspec.Raw, path: str) -> None:
        """One message. Raises MalformedRequest with `param`."""
        message = read(_MESSAGE, raw, path)
        at = f"{path}.content"
        if message.role in ("user", "system", "developer"):
            content = self._content(message.content, at)
            self.items.append(b'{"role":' + encode(message.role) + b',"content":' + content + b"}")
        elif message.role == "assistant":
            self._assistant(message, path)
        elif message.role == "tool":
            if message.tool_call_id is None:
                param = f"{path}.tool_call_id"
                raise MalformedRequest(f"{param} is required", param=param, code="missing_required_parameter")
            kind = "custom_tool_call_output" if message.tool_call_id in self._custom else "function_call_output"
            head = b'{"type":"%b","call_id":' % kind.encode() + encode(message.tool_call_id)
            self.items.append(head + b',"output":' + self._content(message.content, at) + b"}")
        elif message.role == "function":
            self._lost.add(f"{path}.role=function")
        else:
            raise MalformedRequest(
                f"{path}.role: must be system, developer, user, assistant or tool", param=f"{path}.role"
            )

    def _assistant(self, message: _Message, path: str) -> None:
        texts = [self._text(part) for part in self._parts(message.content, f"{path}.content")]
        text = "".join(texts) or message.refusal
        if text:
            self.items.append(b'{"role":"assistant","content":' + encode(text) + b"}")
        if not is_null(message.function_call):
            self._lost.add(f"{path}.function_call")
        calls = [] if is_null(message.tool_calls) else read_list(message.tool_calls, f"{path}.tool_calls")
        for index, item in enumerate(calls):
            self._call(item, f"{path}.tool_calls[{index}]")

    def _call(self, item: msgspec.Raw, path: str) -> None:
        call = read(_CALL, item, path)
        told = {"type": f"{call.type}_call", "call_id": call.id}
        if call.type == "function" and not is_null(call.function):
            function = read(_FUNCTION, call.function, f"{path}.function")
            told |= {"name": function.name, "arguments": function.arguments}
        elif call.type == "custom" and not is_null(call.custom):
            custom = read(_CUSTOM, call.custom, f"{path}.custom")
            self._custom.add(call.id)
            told |= {"type": "custom_tool_call", "name": custom.name, "input": custom.input}
        else:
            self._lost.add(f"{path}.type={call.type[:40]}")
            return
        self.items.append(encode(told))

    def _content(self, raw: msgspec.Raw, path: str) -> bytes:
        if is_null(raw) or first_byte(raw) == b'"':
            return encode("" if is_null(raw) else read(_STRING, raw, path))
        parts = enumerate(self._parts(raw, path))
        written = (self._part(part, f"{path}[{index}]") for index, part in parts)
        return b"[" + b",".join(each for each in written if each) + b"]"

    def _parts(self, raw: msgspec.Raw, path: str) -> list[_Part]:
        if is_null(raw):
            return []
        if first_byte(raw) == b'"':
            return [_Part(text=read(_STRING, raw, path))]
        return [
            _Part(text=read(_STRING, item, f"{path}[{index}]"))
            if first_byte(item) == b'"'
            else read(_PART, item, f"{path}[{index}]")
            for index, item in enumerate(read_list(raw, path))
        ]

    def _text(self, part: _Part) -> str:
        return part.text or part.refusal or ""

    def _part(self, part: _Part, path: str) -> bytes:
        if part.type == "image_url" and not is_null(part.image_url):
            at = f"{path}.image_url"
            bare = first_byte(part.image_url) == b'"'
            image = _Url(read(_STRING, part.image_url, at)) if bare else read(_URL, part.image_url, at)
            return encode({"type": "input_image", "image_url": image.url, "detail": image.detail or "auto"})
        if part.type == "file" and not is_null(part.file):
            file = read(_FILE, part.file, f"{path}.file")
            told = {"file_data": file.file_data, "file_id": file.file_id, "filename": file.filename}
            return encode({"type": "input_file"} | {key: value for key, value in told.items() if value is not None})
        if part.type == "input_audio" and not is_null(part.input_audio):
            return b'{"type":"input_audio","input_audio":' + bytes(part.input_audio) + b"}"
        if part.text is not None or part.refusal is not None:
            return encode({"type": "input_text", "text": self._text(part)})
        self._lost.add(f"{path}.type={part.type[:40]}")
        return b""
