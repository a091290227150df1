"""The turns of a Messages request as chat messages.

Every message depends only on the turns before its end, so a conversation that grew by a turn gives the same messages
and some more: an engine's prefix cache keeps what it has.
"""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.anthropic.blocks import KIND, TEXT, THINKING, TOOL_RESULT, TOOL_USE
from gateway.wire.anthropic.parts import SEPARATOR, Part, content_of, content_parts, part_of
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list

__all__ = ["Conversation"]

_STRING = msgspec.json.Decoder(str)
_PICTURE = "(picture: see the next message)"
"""Stands in a tool's result for a picture: chat's tool messages hold text only."""


class _Message(msgspec.Struct, gc=False):
    role: str
    content: msgspec.Raw = NOTHING


_MESSAGE = msgspec.json.Decoder(_Message)


class Conversation:
    """Takes the system prompt and the turns in order; `messages` are the chat messages, raw."""

    def __init__(self, lost: Lost) -> None:
        self.messages: list[bytes] = []
        self._lost = lost
        self._system: list[Part] = []
        self._user: list[Part] = []  # of the user's turn that is not closed yet
        self._begun = False

    def system(self, raw: msgspec.Raw, path: str) -> None:
        """The system prompt, text or blocks of text."""
        self._system += self._texts(raw, path)

    def turn(self, raw: msgspec.Raw, path: str) -> None:
        """One entry of `messages`. Raises MalformedRequest with `param`."""
        message = read(_MESSAGE, raw, path)
        content = f"{path}.content"
        if message.role == "system":
            self._system_turn(message.content, content)
            return
        if message.role not in ("user", "assistant"):
            raise MalformedRequest(f"{path}.role: must be user, assistant or system", param=f"{path}.role")
        if message.content is NOTHING:
            raise MalformedRequest(f"{content} is required", param=content, code="missing_required_parameter")
        self._begin()
        if message.role == "user":
            self._user_turn(message.content, content)
        else:
            self._close_user()
            self._assistant(message.content, content)

    def end(self) -> None:
        """All turns are there."""
        self._begin()
        self._close_user()

    def _begin(self) -> None:
        if not self._begun and self._system:
            self.messages.append(b'{"role":"system","content":' + content_of(self._system) + b"}")
        self._begun = True

    def _system_turn(self, raw: msgspec.Raw, path: str) -> None:
        # Templates of many models take a system message at the very front only. Moved there it would change the
        # prompt's head and cost a whole prefill; so it stays in place, in the user's turn, marked as the clients that
        # send such messages mark them there.
        texts = self._texts(raw, path)
        if not self._begun:
            self._system += texts
        elif texts:
            self._user.append(f"<system-reminder>\n{SEPARATOR.join(texts)}\n</system-reminder>")

    def _texts(self, raw: msgspec.Raw, path: str) -> list[str]:
        texts: list[str] = []
        for part in content_parts(raw, path, self._lost):
            if isinstance(part, str):
                texts.append(part)
            else:
                self._lost.add(path)
        return texts

    def _user_turn(self, raw: msgspec.Raw, path: str) -> None:
        if first_byte(raw) != b"[":
            self._user += content_parts(raw, path, self._lost)
            return
        own: list[Part] = []
        for index, block in enumerate(read_list(raw, path)):
            at = f"{path}[{index}]"
            kind = read(KIND, block, at).type
            if kind == "tool_result":
                self._tool_result(block, at)
            else:
                own += part_of(block, kind, at, self._lost)
        self._user += own

    def _tool_result(self, block: msgspec.Raw, path: str) -> None:
        # Chat wants results right after the calls; the pictures in them lead the user's own words.
        result = read(TOOL_RESULT, block, path)
        texts: list[str] = []
        for part in content_parts(result.content, f"{path}.content", self._lost, 1):
            if isinstance(part, str):
                texts.append(part)
            else:
                texts.append(_PICTURE)
                self._user.append(part)
        text = SEPARATOR.join(texts)
        if result.is_error and text[:5].lower() != "error":
            text = f"Error: {text}"  # chat has no other way to say that a call failed
        self.messages.append(
            b'{"role":"tool","tool_call_id":' + encode(result.tool_use_id) + b',"content":' + encode(text) + b"}"
        )

    def _assistant(self, raw: msgspec.Raw, path: str) -> None:
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[bytes] = []
        if first_byte(raw) == b"[":
            for index, block in enumerate(read_list(raw, path)):
                self._assistant_block(block, f"{path}[{index}]", texts, thoughts, calls)
        elif not is_null(raw):
            texts.append(read(_STRING, raw, path))
        text = SEPARATOR.join(text for text in texts if text)
        message = b'{"role":"assistant"'
        if thoughts:
            message += b',"reasoning_content":' + encode(SEPARATOR.join(thoughts))
        message += b',"content":' + (encode(text) if text or not calls else b"null")
        if calls:
            message += b',"tool_calls":[' + b",".join(calls) + b"]"
        self.messages.append(message + b"}")

    def _assistant_block(
        self, block: msgspec.Raw, path: str, texts: list[str], thoughts: list[str], calls: list[bytes]
    ) -> None:
        kind = read(KIND, block, path).type
        if kind == "text":
            texts.append(read(TEXT, block, path).text)
        elif kind == "thinking":
            thought = read(THINKING, block, path).thinking
            if thought:
                thoughts.append(thought)
        elif kind == "tool_use":
            calls.append(_call(block, path))
        elif kind != "redacted_thinking":  # which only its author can read
            self._lost.add(f"{path}.type={kind[:40]}")

    def _close_user(self) -> None:
        if self._user:
            self.messages.append(b'{"role":"user","content":' + content_of(self._user) + b"}")
            self._user = []


def _call(block: msgspec.Raw, path: str) -> bytes:
    call = read(TOOL_USE, block, path)
    arguments = "{}" if is_null(call.input) else bytes(call.input).decode()
    if not arguments.startswith("{"):
        raise MalformedRequest(f"{path}.input must be an object", param=f"{path}.input")
    return (
        b'{"id":'
        + encode(call.id)
        + b',"type":"function","function":{"name":'
        + encode(call.name)
        + b',"arguments":'
        + encode(arguments)
        + b"}}"
    )
