"""The chat messages of a conversation, written turn by turn as its items come."""

from __future__ import annotations

from gateway.wire.raw_members import encode
from gateway.wire.responses.assistant_turn import AssistantTurn
from gateway.wire.responses.parts import SEPARATOR, Part, content_of

__all__ = ["Turns"]

_PICTURE = "(see the next message)"
"""Stands in a tool's output for what is no text: chat's tool messages hold text only."""


class Turns:
    """`messages` are the chat messages, raw, once `end` was called.

    Texts of the system or a developer that lead are one system message: many models' templates take one only, at the
    very front. Later ones stay where they are, in the user's turn: moved to the front they would change the prompt's
    head and cost a whole prefill.
    """

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self._system: list[Part] = []
        self._begun = False
        self._user: list[Part] = []  # of the turn that is not closed yet
        self._assistant = AssistantTurn()

    def system(self, parts: list[Part]) -> None:
        """What the system or a developer says."""
        if self._begun:
            self.user().extend(parts)
        else:
            self._system += parts

    def user(self) -> list[Part]:
        """The parts of the user's turn, to add to."""
        self._begin()
        self._close_assistant()
        return self._user

    def assistant(self) -> AssistantTurn:
        """The assistant's turn, to add to."""
        self._begin()
        self._close_user()
        return self._assistant

    def result(self, call_id: str, parts: list[Part]) -> None:
        """What came of a call. Chat wants results right after the calls; pictures in them lead the user's own words."""
        self._begin()
        self._close_assistant()
        texts: list[str] = []
        for part in parts:
            texts.append(part if isinstance(part, str) else _PICTURE)
            if not isinstance(part, str):
                self._user.append(part)
        content = encode(SEPARATOR.join(texts))
        self.messages.append(b'{"role":"tool","tool_call_id":' + encode(call_id) + b',"content":' + content + b"}")

    def end(self) -> None:
        """All items are there."""
        self._begin()
        self._close_assistant()
        self._close_user()

    def _begin(self) -> None:
        if not self._begun and self._system:
            self.messages.append(b'{"role":"system","content":' + content_of(self._system) + b"}")
        self._begun = True

    def _close_user(self) -> None:
        if self._user:
            self.messages.append(b'{"role":"user","content":' + content_of(self._user) + b"}")
            self._user = []

    def _close_assistant(self) -> None:
        message = self._assistant.message()
        if message is not None:
            self.messages.append(message)
            self._assistant = AssistantTurn()
