"""Calls of a client's tools as items of an answer, by the kind that the client knows each tool as."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.responses.asked import Origin, ToolKind
from gateway.wire.responses.custom_input import CustomInput
from gateway.wire.responses.grown import Grown
from gateway.wire.responses.output_items import Emit

__all__ = ["CallItem", "call_item"]

_SHELL_OPTIONS = ("timeout_ms", "user", "working_directory")


class CallItem(ABC):
    """One call. A subclass says what its item looks like and which events tell of its arguments."""

    __slots__ = ("_arguments", "_call_id", "_index", "_origin", "_repeated", "id")

    prefix = ""
    """How ids of such items begin."""
    _nothing = ""
    """The arguments of a call that has none."""

    def __init__(self, item_id: str, index: int, call_id: str, origin: Origin) -> None:
        self.id = item_id
        self._index = index
        self._call_id = call_id
        self._origin = origin
        self._arguments: list[str] = []
        self._repeated: Grown | None = None

    def open(self, emit: Emit) -> None:
        """The call has begun; its arguments follow."""
        emit("response.output_item.added", {"output_index": self._index, "item": self._item("in_progress", "")})

    def add(self, emit: Emit, fragment: str) -> None:
        """Some more of the arguments."""
        self._arguments.append(fragment)
        self._grow(emit, fragment)

    def close(self, emit: Emit, status: str) -> dict[str, Any]:
        """The arguments are whole; of a call without any they are an empty object, unless the answer was cut."""
        if status == "completed" and self._nothing and not self._arguments:
            self.add(emit, self._nothing)
        self._finish(emit, cut=status != "completed")
        item = self._item(status, self._text())
        emit("response.output_item.done", {"output_index": self._index, "item": item})
        return item

    @abstractmethod
    def _grow(self, emit: Emit, fragment: str) -> None:
        """Tell of a fragment."""

    @abstractmethod
    def _finish(self, emit: Emit, *, cut: bool) -> None:
        """Tell that nothing more comes. Raises StreamBroken for what is no call although nothing was cut."""

    def _text(self) -> str:
        return "".join(self._arguments)

    def _whole(self) -> Grown:
        """The text once it is whole, for every event that says it again."""
        if self._repeated is None:
            self._repeated = Grown()
            self._repeated.add(self._text())
        return self._repeated

    def _item(self, status: str, text: str) -> dict[str, Any]:
        return {"id": self.id, "status": status, "call_id": self._call_id, **self._own(text)}

    @abstractmethod
    def _own(self, text: str) -> dict[str, Any]:
        """What only items of this kind have; `text` are the arguments so far."""

    def _name(self) -> dict[str, Any]:
        space = self._origin.namespace
        return {"name": self._origin.name} | ({} if space is None else {"namespace": space})

    def _place(self) -> dict[str, Any]:
        return {"item_id": self.id, "output_index": self._index}


class _FunctionCall(CallItem):
    __slots__ = ()

    prefix = "fc"
    _nothing = "{}"

    def _grow(self, emit: Emit, fragment: str) -> None:
        emit("response.function_call_arguments.delta", {**self._place(), "delta": fragment})

    def _finish(self, emit: Emit, *, cut: bool) -> None:
        del cut  # its arguments are text, whole or not
        done = {**self._place(), "name": self._origin.name, "arguments": self._whole()}
        emit("response.function_call_arguments.done", done)

    def _own(self, text: str) -> dict[str, Any]:
        return {"type": "function_call", **self._name(), "arguments": self._whole() if text else ""}


class _CustomCall(CallItem):
    __slots__ = ("_input",)

    prefix = "ctc"

    def __init__(self, item_id: str, index: int, call_id: str, origin: Origin) -> None:
        super().__init__(item_id, index, call_id, origin)
        self._input = CustomInput()

    def _grow(self, emit: Emit, fragment: str) -> None:
        self._tell(emit, self._input.add(fragment))

    def _finish(self, emit: Emit, *, cut: bool) -> None:
        self._tell(emit, self._input.end(cut=cut))
        emit("response.custom_tool_call_input.done", {**self._place(), "input": self._whole()})

    def _text(self) -> str:
        return self._input.text

    def _tell(self, emit: Emit, text: str) -> None:
        if text:
            emit("response.custom_tool_call_input.delta", {**self._place(), "delta": text})

    def _own(self, text: str) -> dict[str, Any]:
        return {"type": "custom_tool_call", **self._name(), "input": self._whole() if text else ""}


class _SilentCall(CallItem):
    # The API has no events for pieces of such calls.
    __slots__ = ()

    def _grow(self, emit: Emit, fragment: str) -> None:
        pass

    def _finish(self, emit: Emit, *, cut: bool) -> None:
        del emit
        text = self._text()
        if not cut and text.strip() and _object(text) is None:
            raise StreamBroken("the engine sent a tool call whose arguments are no JSON object")


class _ShellCall(_SilentCall):
    __slots__ = ()

    prefix = "lsh"

    def _own(self, text: str) -> dict[str, Any]:
        asked = _object(text) or {}
        command, env = asked.get("command"), asked.get("env")
        if isinstance(command, str):
            command = ["bash", "-lc", command] if command else []
        action: dict[str, Any] = {
            "type": "exec",
            "command": [str(word) for word in command] if isinstance(command, list) else [],
            "env": {key: str(value) for key, value in env.items()} if isinstance(env, dict) else {},
        }
        action |= {name: asked[name] for name in _SHELL_OPTIONS if asked.get(name) is not None}
        return {"type": "local_shell_call", "action": _raw(action)}


class _SearchCall(_SilentCall):
    __slots__ = ()

    prefix = "tsc"

    def _own(self, text: str) -> dict[str, Any]:
        asked = _object(text) or {}
        return {"type": "tool_search_call", "execution": "client", "arguments": _raw(asked)}


_CLASSES: dict[ToolKind, type[CallItem]] = {
    ToolKind.FUNCTION: _FunctionCall,
    ToolKind.CUSTOM: _CustomCall,
    ToolKind.LOCAL_SHELL: _ShellCall,
    ToolKind.TOOL_SEARCH: _SearchCall,
}


def call_item(origin: Origin, stamp_id: str, index: int, call_id: str | None) -> CallItem:
    """The item for a call of that tool, at that place of the output; an id is made where the engine gave none."""
    kind = _CLASSES[origin.kind]
    return kind(f"{kind.prefix}_{stamp_id}_{index}", index, call_id or f"call_{stamp_id}_{index}", origin)


def _object(arguments: str) -> dict[str, Any] | None:
    # Numbers of any size, and line breaks within texts, as models write them.
    try:
        value = json.loads(arguments.encode("utf-8", "replace"), strict=False, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())
