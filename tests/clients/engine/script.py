"""What the scripted engine says: one short task with tools, the same on every surface.

Rounds are counted by the tool calls in the history, so the script holds no state between requests: write a file, then
read it back and note so in another (two calls at once), then say that it is done.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CONTENT", "DONE", "FILE", "NOTES", "Call", "Offer", "Script", "Step", "Turn", "instance"]

FILE, NOTES = "done.txt", "notes.txt"
CONTENT = 'tea & "naïve" ✓ </done> 100%'
"""What is to stand in the file: what breaks where JSON, shells or mark-up are glued together."""
DONE = "The file is written, and read back."
_THOUGHT = "The user wants a file. One tool can do that; then I read it back."


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that the client offers; `schema` is that of its arguments."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """A request, whatever its dialect.

    rounds: assistant turns with tool calls in the history. results: texts of the tool results since. open_calls: calls
    of the history that nobody answered. choice: auto, none, required, or the name of the tool that must be called.
    schema: of the answer, where the client wants JSON.
    """

    model: str
    stream: bool
    text: str
    offers: tuple[Offer, ...] = ()
    choice: str = "auto"
    rounds: int = 0
    results: tuple[str, ...] = ()
    open_calls: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    show_usage: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `arguments` is JSON text as a model writes it, with spaces."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Step:
    """What the engine answers: thoughts, then text, then calls. Numbers of tokens are made up, but add up."""

    thought: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    prompt_tokens: int = 1200
    cached_tokens: int = 1024
    output_tokens: int = 48


@dataclass(slots=True)
class Script:
    """The rule. `replies`: pattern of the prompt's text → the answer's text, first match. `thinks`: with reasoning."""

    replies: tuple[tuple[str, str], ...] = ()
    thinks: bool = True
    _calls: int = field(default=0, init=False)

    def step(self, turn: Turn) -> Step:
        """The answer to a request."""
        for pattern, text in self.replies:
            if re.search(pattern, turn.text):
                return Step(text=text)
        if turn.choice in {offer.name for offer in turn.offers}:
            offer = next(offer for offer in turn.offers if offer.name == turn.choice)
            return Step(calls=(self._call(offer, instance(offer.schema)),))
        if turn.schema is not None and not (turn.offers and turn.rounds < 2):
            return Step(text=json.dumps(instance(turn.schema), ensure_ascii=False))
        thought = _THOUGHT if self.thinks else ""
        if turn.offers and turn.choice != "none":
            if turn.rounds == 0:
                return Step(thought, "I write the file.", self._writes(turn.offers))
            if turn.rounds == 1:
                return Step(thought, "", self._reads(turn.offers))
        return Step(thought if turn.offers else "", DONE)

    def _writes(self, offers: tuple[Offer, ...]) -> tuple[Call, ...]:
        if (shell := _shell(offers)) is not None:
            return (self._call(shell, _command(shell, f"printf '%s\\n' '{CONTENT}' > {FILE}")),)
        writer = _with(offers, "content") or _with(offers, "text") or offers[0]
        return (self._call(writer, _naming(writer, FILE, CONTENT + "\n")),)

    def _reads(self, offers: tuple[Offer, ...]) -> tuple[Call, ...]:
        if (shell := _shell(offers)) is not None:
            note = _command(shell, f"printf 'read\\n' >> {NOTES}")
            return self._call(shell, _command(shell, f"cat {FILE}")), self._call(shell, note)
        writer, reader = _with(offers, "content"), next((o for o in offers if o.name.startswith("read")), None)
        if writer is None or reader is None:
            return (self._call(offers[0], instance(offers[0].schema)),)
        return (
            self._call(reader, _naming(reader, FILE, "")),
            self._call(writer, _naming(writer, NOTES, "read\n")),
        )

    def _call(self, offer: Offer, arguments: Mapping[str, Any]) -> Call:
        self._calls += 1
        # As models do it: characters as they are, a space after colons and commas.
        return Call(f"call_{self._calls:08d}", offer.name, json.dumps(arguments, ensure_ascii=False))


def instance(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """A small value that a JSON schema allows; enough of the language for tools and structured output."""
    root = schema if root is None else root
    if depth > 8:
        return None
    if isinstance(reference := schema.get("$ref"), str):
        target: Any = root
        for part in reference.lstrip("#/").split("/"):
            target = target[part]
        return instance(target, root, depth + 1)
    for chosen in ("const", "default"):
        if chosen in schema:
            return schema[chosen]
    if schema.get("enum"):
        return schema["enum"][0]
    for union in ("anyOf", "oneOf", "allOf"):
        if schema.get(union):
            return instance(schema[union][0], root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        members = schema.get("properties", {})
        needed = schema.get("required", list(members))
        return {name: instance(members.get(name, {}), root, depth + 1) for name in needed}
    if kind == "array":
        return [instance(schema.get("items", {}), root, depth + 1)]
    return {"integer": schema.get("minimum", 1), "number": 1.5, "boolean": False, "null": None}.get(kind, "Oslo")


def _members(offer: Offer) -> Mapping[str, Any]:
    found = offer.schema.get("properties", {})
    return found if isinstance(found, Mapping) else {}


def _shell(offers: tuple[Offer, ...]) -> Offer | None:
    named = re.compile(r"^(bash|shell|exec_command|shell_command|run_command|terminal)$", re.IGNORECASE)
    return next((o for o in offers if named.match(o.name) and {"command", "cmd"} & set(_members(o))), None)


def _with(offers: tuple[Offer, ...], member: str) -> Offer | None:
    return next((offer for offer in offers if member in _members(offer)), None)


def _command(offer: Offer, line: str) -> dict[str, Any]:
    arguments = dict(instance(offer.schema)) if offer.schema.get("required") else {}
    name = "cmd" if "cmd" in _members(offer) else "command"
    listed = _members(offer)[name].get("type") == "array"
    arguments[name] = ["bash", "-lc", line] if listed else line
    return arguments


def _naming(offer: Offer, path: str, content: str) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name in _members(offer):
        if re.search("path|file", name, re.IGNORECASE):
            arguments[name] = path
        elif name in ("content", "text"):
            arguments[name] = content
    return arguments or dict(instance(offer.schema))
