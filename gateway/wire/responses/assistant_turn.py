"""What the assistant said, thought and called in one turn, as one chat message."""

from __future__ import annotations

from gateway.wire.raw_members import encode
from gateway.wire.responses.parts import SEPARATOR

__all__ = ["AssistantTurn"]


class AssistantTurn:
    """One turn while its items are read."""

    __slots__ = ("_calls", "texts", "thoughts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self._calls: list[bytes] = []

    def call(self, call_id: str, name: str, arguments: str) -> None:
        """A tool was called; the name is chat's."""
        function = b'{"name":' + encode(name) + b',"arguments":' + encode(arguments) + b"}"
        self._calls.append(b'{"id":' + encode(call_id) + b',"type":"function","function":' + function + b"}")

    def message(self) -> bytes | None:
        """The message, raw; None where nothing was said."""
        if not (self.texts or self.thoughts or self._calls):
            return None
        message = b'{"role":"assistant"'
        if self.thoughts:
            message += b',"reasoning_content":' + encode(SEPARATOR.join(self.thoughts))
        text = SEPARATOR.join(self.texts)
        message += b',"content":' + (encode(text) if text or not self._calls else b"null")
        if self._calls:
            message += b',"tool_calls":[' + b",".join(self._calls) + b"]"
        return message + b"}"
