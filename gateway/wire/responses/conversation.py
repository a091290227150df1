"""The items of a request as chat messages.

Every message depends only on the items before its end, so a conversation that grew by a turn gives the same messages
and some more: an engine's prefix cache keeps what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list
from gateway.wire.responses import item_shapes as shapes
from gateway.wire.responses.parts import content_parts
from gateway.wire.responses.toolbox import Toolbox
from gateway.wire.responses.turns import Turns

__all__ = ["Conversation"]

_STRING = msgspec.json.Decoder(str)
_LEFT_OUT = ("web_search_call", "file_search_call", "mcp_list_tools", "configuration_update")
"""Items that tell what a service did; what came of it stands in the answer that follows."""


class Conversation:
    """Takes the instructions and the items in order; `messages` are the chat messages, raw, once `end` was called."""

    def __init__(self, toolbox: Toolbox, lost: Lost) -> None:
        self._turns = Turns()
        self._toolbox = toolbox
        self._lost = lost

    @property
    def messages(self) -> list[bytes]:
        """As they are so far; the turn that is open is not among them."""
        return self._turns.messages

    def instructions(self, text: str) -> None:
        """What stands above all items."""
        if text:
            self._turns.system([text])

    def items(self, raw: msgspec.Raw) -> None:
        """All of `input`: a user's text, or items. Raises MalformedRequest with `param`."""
        if first_byte(raw) == b'"':
            self._turns.user().append(read(_STRING, raw, "input"))
            return
        if first_byte(raw) != b"[":
            raise MalformedRequest("input must be text or a list of items", param="input")
        for index, item in enumerate(read_list(raw, "input")):
            self._item(item, f"input[{index}]")

    def end(self) -> None:
        """All items are there."""
        self._turns.end()

    def _item(self, item: msgspec.Raw, path: str) -> None:
        if first_byte(item) != b"{":
            raise MalformedRequest(f"{path} must be an object", param=path)
        head = read(shapes.HEAD, item, path)
        kind = head.type or ("message" if head.role is not None else "item_reference")
        take = _TAKERS.get(kind)
        if take is not None:
            take(self, item, path)
        elif kind not in _LEFT_OUT:
            self._lost.add(f"{path}.type={kind[:40]}")

    def _message(self, item: msgspec.Raw, path: str) -> None:
        message = read(shapes.MESSAGE, item, path)
        if message.content is NOTHING:
            raise _missing(f"{path}.content")
        parts = content_parts(message.content, f"{path}.content", self._lost)
        if message.role == "assistant":
            self._turns.assistant().texts += [part for part in parts if isinstance(part, str)]
        elif message.role == "user":
            self._turns.user().extend(parts)
        elif message.role not in ("system", "developer"):
            raise MalformedRequest(f"{path}.role: must be user, assistant, system or developer", param=f"{path}.role")
        else:
            self._turns.system(parts)

    def _agent_message(self, item: msgspec.Raw, path: str) -> None:
        # What another agent of the client's says.
        self._turns.user().extend(content_parts(read(shapes.AGENT, item, path).content, f"{path}.content", self._lost))

    def _reasoning(self, item: msgspec.Raw, path: str) -> None:
        # What only its author can decrypt is left out.
        thought = read(shapes.REASONING, item, path)
        turn = self._turns.assistant()
        for name, raw in (("content", thought.content), ("summary", thought.summary)):
            texts = content_parts(raw, f"{path}.{name}", self._lost)
            if texts:
                turn.thoughts += [text for text in texts if isinstance(text, str)]
                return

    def _function_call(self, item: msgspec.Raw, path: str) -> None:
        call = read(shapes.FUNCTION_CALL, item, path)
        self._turns.assistant().call(call.call_id, self._toolbox.name(call.name, call.namespace), call.arguments)

    def _custom_call(self, item: msgspec.Raw, path: str) -> None:
        call = read(shapes.CUSTOM_CALL, item, path)
        arguments = encode({"input": call.input}).decode()
        self._turns.assistant().call(call.call_id, self._toolbox.name(call.name, call.namespace), arguments)

    def _shell_call(self, item: msgspec.Raw, path: str) -> None:
        call = read(shapes.SHELL_CALL, item, path)
        if call.call_id is None and call.id is None:
            raise _missing(f"{path}.call_id")
        arguments = {key: value for key, value in call.action.items() if key != "type" and value not in (None, {})}
        self._turns.assistant().call(call.call_id or call.id or "", "local_shell", encode(arguments).decode())

    def _search_call(self, item: msgspec.Raw, path: str) -> None:
        call = read(shapes.SEARCH_CALL, item, path)
        if call.call_id is not None:  # else the service searched
            arguments = "{}" if is_null(call.arguments) else bytes(call.arguments).decode()
            self._turns.assistant().call(call.call_id, "tool_search", arguments)

    def _output(self, item: msgspec.Raw, path: str) -> None:
        result = read(shapes.OUTPUT, item, path)
        call_id = result.call_id or result.id
        if call_id is None:
            raise _missing(f"{path}.call_id")
        if result.output is NOTHING:
            raise _missing(f"{path}.output")
        self._turns.result(call_id, content_parts(result.output, f"{path}.output", self._lost))

    def _search_output(self, item: msgspec.Raw, path: str) -> None:
        result = read(shapes.SEARCH_OUTPUT, item, path)
        if not is_null(result.tools):
            self._toolbox.add(result.tools, f"{path}.tools")
        if result.call_id is not None:
            self._turns.result(result.call_id, ["The tools that were found are offered now."])

    def _more_tools(self, item: msgspec.Raw, path: str) -> None:
        tools = read(shapes.SEARCH_OUTPUT, item, path).tools
        if not is_null(tools):
            self._toolbox.add(tools, f"{path}.tools")


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
