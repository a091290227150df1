"""The items of a request as chat messages.

Every message depends only on the items before its end, so a conversation that grew by a turn gives the same messages
and some more: an engine's prefix cache keeps what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list
from gateway.wire.responses import item_shapes as shapes
from gateway.wire.responses.assistant_turn import AssistantTurn
from gateway.wire.responses.parts import SEPARATOR, Part, content_of, content_parts
from gateway.wire.responses.toolbox import Toolbox

__all__ = ["Conversation"]

_STRING = msgspec.json.Decoder(str)
_PICTURE = "(see the next message)"
"""Stands in a tool's output for what is no text: chat's tool messages hold text only."""
_LEFT_OUT = ("web_search_call", "file_search_call", "mcp_list_tools", "configuration_update")
"""Items that tell what a service did; what came of it stands in the answer that follows."""


class Conversation:
    """Takes the instructions and the items in order; `messages` are the chat messages, raw, once `end` was called.

    Texts of the system or a developer that lead are one system message: many models' templates take one only, at the
    very front. Later ones stay where they are, in the user's turn: moved to the front they would change the prompt's
    head and cost a whole prefill.
    """

    def __init__(self, toolbox: Toolbox, lost: list[str]) -> None:
        self.messages: list[bytes] = []
        self._toolbox = toolbox
        self._lost = lost
        self._system: list[Part] = []
        self._begun = False
        self._user: list[Part] = []  # of the turn that is not closed yet
        self._assistant = AssistantTurn()

    def instructions(self, text: str) -> None:
        """What stands above all items."""
        if text:
            self._system.append(text)

    def items(self, raw: msgspec.Raw) -> None:
        """All of `input`: a user's text, or items. Raises MalformedRequest with `param`."""
        if first_byte(raw) == b'"':
            self._turn_to_user().append(read(_STRING, raw, "input"))
            return
        if first_byte(raw) != b"[":
            raise MalformedRequest("input must be text or a list of items", param="input")
        for index, item in enumerate(read_list(raw, "input")):
            self._item(item, f"input[{index}]")

    def end(self) -> None:
        """All items are there."""
        self._begin()
        self._close_assistant()
        self._close_user()

    def _item(self, item: msgspec.Raw, path: str) -> None:
        if first_byte(item) != b"{":
            raise MalformedRequest(f"{path} must be an object", param=path)
        head = read(shapes.HEAD, item, path)
        kind = head.type or ("message" if head.role is not None else "item_reference")
        take = _TAKERS.get(kind)
        if take is not None:
            take(self, item, path)
        elif kind not in _LEFT_OUT:
            self._lost.append(f"{path}.type={kind[:40]}")

    def _message(self, item: msgspec.Raw, path: str) -> None:
        message = read(shapes.MESSAGE, item, path)
        if message.content is NOTHING:
            raise _missing(f"{path}.content")
        parts = content_parts(message.content, f"{path}.content", self._lost)
        if message.role == "assistant":
            self._turn_to_assistant()
            self._assistant.texts += [part for part in parts if isinstance(part, str)]
        elif message.role == "user":
            self._turn_to_user().extend(parts)
        elif message.role not in ("system", "developer"):
            raise MalformedRequest(f"{path}.role: must be user, assistant, system or developer", param=f"{path}.role")
        elif self._begun:
            self._turn_to_user().extend(parts)
        else:
            self._system += parts

    def _agent_message(self, item: msgspec.Raw, path: str) -> None:
        # What another agent of the client's says.
        self._turn_to_user().extend(
            content_parts(read(shapes.AGENT, item, path).content, f"{path}.content", self._lost)
        )

    def _reasoning(self, item: msgspec.Raw, path: str) -> None:
        # What only its author can decrypt is left out.
        thought = read(shapes.REASONING, item, path)
        self._turn_to_assistant()
        for name, raw in (("content", thought.content), ("summary", thought.summary)):
            texts = content_parts(raw, f"{path}.{name}", self._lost)
            if texts:
                self._assistant.thoughts += [text for text in texts if isinstance(text, str)]
                return

    def _function_call(self, item: msgspec.Raw, path: str) -> None:
        call = read(shapes.FUNCTION_CALL, item, path)
        self._call(call.call_id, self._toolbox.name(call.name, call.namespace), call.arguments)

    def _custom_call(self, item: msgspec.Raw, path: str) -> None:
        call = read(shapes.CUSTOM_CALL, item, path)
        arguments = encode({"input": call.input}).decode()
        self._call(call.call_id, self._toolbox.name(call.name, call.namespace), arguments)

    def _shell_call(self, item: msgspec.Raw, path: str) -> None:
        call = read(shapes.SHELL_CALL, item, path)
        if call.call_id is None and call.id is None:
            raise _missing(f"{path}.call_id")
        arguments = {key: value for key, value in call.action.items() if key != "type" and value not in (None, {})}
        self._call(call.call_id or call.id or "", "local_shell", encode(arguments).decode())

    def _search_call(self, item: msgspec.Raw, path: str) -> None:
        call = read(shapes.SEARCH_CALL, item, path)
        if call.call_id is not None:  # else the service searched
            arguments = "{}" if is_null(call.arguments) else bytes(call.arguments).decode()
            self._call(call.call_id, "tool_search", arguments)

    def _output(self, item: msgspec.Raw, path: str) -> None:
        result = read(shapes.OUTPUT, item, path)
        call_id = result.call_id or result.id
        if call_id is None:
            raise _missing(f"{path}.call_id")
        if result.output is NOTHING:
            raise _missing(f"{path}.output")
        self._result(call_id, content_parts(result.output, f"{path}.output", self._lost))

    def _search_output(self, item: msgspec.Raw, path: str) -> None:
        result = read(shapes.SEARCH_OUTPUT, item, path)
        if not is_null(result.tools):
            self._toolbox.add(result.tools, f"{path}.tools")
        if result.call_id is not None:
            self._result(result.call_id, ["The tools that were found are offered now."])

    def _more_tools(self, item: msgspec.Raw, path: str) -> None:
        tools = read(shapes.SEARCH_OUTPUT, item, path).tools
        if not is_null(tools):
            self._toolbox.add(tools, f"{path}.tools")

    def _call(self, call_id: str, name: str, arguments: str) -> None:
        self._turn_to_assistant()
        self._assistant.call(call_id, name, arguments)

    def _result(self, call_id: str, parts: list[Part]) -> None:
        # Chat wants results right after the calls; the pictures in them lead the user's own words.
        self._begin()
        self._close_assistant()
        texts: list[str] = []
        for part in parts:
            texts.append(part if isinstance(part, str) else _PICTURE)
            if not isinstance(part, str):
                self._user.append(part)
        content = encode(SEPARATOR.join(texts))
        self.messages.append(b'{"role":"tool","tool_call_id":' + encode(call_id) + b',"content":' + content + b"}")

    def _turn_to_user(self) -> list[Part]:
        self._begin()
        self._close_assistant()
        return self._user

    def _turn_to_assistant(self) -> None:
        self._begin()
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


def _missing(path: str) -> MalformedRequest:
    return MalformedRequest(f"{path} is required", param=path, code="missing_required_parameter")


_TAKERS: Mapping[str, Callable[[Conversation, Any, str], None]] = {
    "message": Conversation._message,
    "agent_message": Conversation._agent_message,
    "reasoning": Conversation._reasoning,
    "function_call": Conversation._function_call,
    "custom_tool_call": Conversation._custom_call,
    "local_shell_call": Conversation._shell_call,
    "tool_search_call": Conversation._search_call,
    "function_call_output": Conversation._output,
    "custom_tool_call_output": Conversation._output,
    "local_shell_call_output": Conversation._output,
    "tool_search_output": Conversation._search_output,
    "additional_tools": Conversation._more_tools,
}
