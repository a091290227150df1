"""The tools of a request as functions of chat, and the names by which they are found again in the answer."""

from __future__ import annotations

import re

import msgspec
import xxhash

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list
from gateway.wire.responses.asked import Origin, ToolKind

__all__ = ["Toolbox"]

_LONGEST = 64
"""Characters of a function's name, OpenAI's limit; hosted chat services check it."""
_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_OFFERED = ("web_search", "image_generation", "tool_search")
"""Begin the types of tools that the service runs and that agents offer always, needed or not: left out. (A tool search
that the client runs is a function.) What else the service runs works on the client's own data, so it is missed."""
_LOCAL_SHELL = (
    b'{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},"description":'
    b'"The program and its arguments."},"working_directory":{"type":"string"},"timeout_ms":{"type":"integer"},'
    b'"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["command"]}'
)
_INPUT = (
    b'{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool."}},'
    b'"required":["input"],"additionalProperties":false}'
)
_NO_PARAMETERS = b'{"type":"object","properties":{}}'


class _Kind(msgspec.Struct, gc=False):
    type: str


class _Tool(msgspec.Struct, gc=False):
    name: str
    description: str | None = None
    parameters: msgspec.Raw = NOTHING
    strict: bool | None = None
    format: msgspec.Raw = NOTHING


class _Namespace(msgspec.Struct, gc=False):
    name: str
    tools: msgspec.Raw
    description: str | None = None


class _Search(msgspec.Struct, gc=False):
    execution: str | None = None
    description: str | None = None
    parameters: msgspec.Raw = NOTHING


class _Grammar(msgspec.Struct, gc=False):
    type: str = "text"
    syntax: str = ""
    definition: str = ""


_KIND = msgspec.json.Decoder(_Kind)
_TOOL = msgspec.json.Decoder(_Tool)
_NAMESPACE = msgspec.json.Decoder(_Namespace)
_SEARCH = msgspec.json.Decoder(_Search)
_GRAMMAR = msgspec.json.Decoder(_Grammar)


class Toolbox:
    """functions: chat's tools by name, raw, in the order in which they were offered. origins: see `Asked.tools`."""

    def __init__(self, lost: Lost) -> None:
        self.functions: dict[str, bytes] = {}
        self.origins: dict[str, Origin] = {}
        self._lost = lost

    def add(self, raw: msgspec.Raw, path: str) -> None:
        """Take a list of tools. Schemas keep their bytes. Raises MalformedRequest with `param`."""
        for index, item in enumerate(read_list(raw, path)):
            self._add(item, f"{path}[{index}]")

    def name(self, name: str, namespace: str | None = None) -> str:
        """The name in chat of a tool. The same for a call of an earlier turn, whatever is offered now."""
        if namespace is None:
            return name
        joint = "" if namespace.endswith("__") else "__"
        flat = _ODD.sub("_", f"{namespace}{joint}{name}")
        if len(flat) <= _LONGEST:
            return flat
        return f"{flat[: _LONGEST - 9]}_{xxhash.xxh32_hexdigest(flat.encode())}"

    def _add(self, item: msgspec.Raw, path: str) -> None:
        kind = read(_KIND, item, path).type
        if kind == "function":
            self._function(item, path, None, None)
        elif kind == "custom":
            self._custom(item, path, None)
        elif kind == "namespace":
            self._namespace(item, path)
        elif kind == "local_shell":
            function = _function("local_shell", "Runs a command on the user's machine.", _LOCAL_SHELL)
            self._offer("local_shell", function, Origin(ToolKind.LOCAL_SHELL, "local_shell"))
        elif kind == "tool_search" and read(_SEARCH, item, path).execution == "client":
            search = read(_SEARCH, item, path)
            function = _function("tool_search", search.description, _schema(search.parameters, path))
            self._offer("tool_search", function, Origin(ToolKind.TOOL_SEARCH, "tool_search"))
        elif not kind.startswith(_OFFERED):
            self._lost.add(f"{path}.type={kind[:40]}")

    def _namespace(self, item: msgspec.Raw, path: str) -> None:
        space = read(_NAMESPACE, item, path)
        about = space.description
        for index, inner in enumerate(read_list(space.tools, f"{path}.tools")):
            at = f"{path}.tools[{index}]"
            kind = read(_KIND, inner, at).type
            if kind == "function":
                self._function(inner, at, space.name, about)
                about = None  # what is said of all of them is said once, with the first
            elif kind == "custom":
                self._custom(inner, at, space.name)
            else:
                self._lost.add(f"{at}.type={kind[:40]}")

    def _function(self, item: msgspec.Raw, path: str, namespace: str | None, about: str | None) -> None:
        tool = read(_TOOL, item, path)
        name = self.name(tool.name, namespace)
        description = tool.description
        if about:
            description = f"{description or ''}\n\n{namespace}: {about}".strip()
        function = _function(name, description, _schema(tool.parameters, path), strict=tool.strict is True)
        self._offer(name, function, Origin(ToolKind.FUNCTION, tool.name, namespace) if namespace is not None else None)

    def _custom(self, item: msgspec.Raw, path: str, namespace: str | None) -> None:
        tool = read(_TOOL, item, path)
        description = tool.description or ""
        if not is_null(tool.format):
            grammar = read(_GRAMMAR, tool.format, f"{path}.format")
            if grammar.type == "grammar":
                description += f"\n\nThe input must follow this {grammar.syntax} grammar:\n{grammar.definition}"
        name = self.name(tool.name, namespace)
        self._offer(name, _function(name, description.strip(), _INPUT), Origin(ToolKind.CUSTOM, tool.name, namespace))

    def _offer(self, name: str, function: bytes, origin: Origin | None) -> None:
        if name in self.functions:  # a search finds some of them again
            return
        self.functions[name] = function
        if origin is not None:
            self.origins[name] = origin


def _function(name: str, description: str | None, parameters: bytes, *, strict: bool = False) -> bytes:
    function = b'{"name":' + encode(name)
    if description:
        function += b',"description":' + encode(description)
    function += b',"parameters":' + parameters
    if strict:
        function += b',"strict":true'
    return b'{"type":"function","function":' + function + b"}}"


def _schema(raw: msgspec.Raw, path: str) -> bytes:
    if is_null(raw):
        return _NO_PARAMETERS
    if first_byte(raw) != b"{":
        raise MalformedRequest(f"{path}.parameters must be an object", param=f"{path}.parameters")
    return bytes(raw)
