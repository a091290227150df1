"""YAML text to plain values, with line and column of every key: bounded, without anything that could run or loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from gateway.config.problems import Path, Problem, path_text
from gateway.config.syntax import syntax_problem

__all__ = ["Source", "holds", "read"]

MAX_TEXT = 1024 * 1024
"""Characters; a policy of a thousand backends is a quarter of it."""
MAX_VALUES = 50_000
"""Values after aliases are expanded: stops alias bombs."""
MAX_DEPTH = 40

_TAG = "tag:yaml.org,2002:"
_EXACT = {"null": None, "Null": None, "NULL": None, "~": None, "": None}


@dataclass(slots=True)
class Source:
    """What a file says: plain mappings, lists and scalars; where each stands; and what is wrong with its form."""

    file: str
    data: Any = None
    marks: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Line and column, from 1, of each key or list item."""
    problems: list[Problem] = field(default_factory=list)
    broken: set[Path] = field(default_factory=set)
    """Paths that already have a problem."""

    def at(self, path: Path) -> tuple[int, int]:
        """Line and column of a path, or of the nearest thing above it that stands in the file."""
        if not path:
            return 0, 0
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, (0, 0))

    def get(self, path: Path) -> Any:
        """The value at a path as it was written; None when there is none."""
        value = self.data
        for part in path:
            if not holds(value, part):
                return None
            value = value[part]
        return value

    def problem(self, path: Path, message: str, hint: str = "") -> Problem:
        """A problem at a path."""
        return Problem(self.file, *self.at(path), path_text(path), message, hint)


def holds(value: Any, part: str | int) -> bool:
    """Whether a value is a mapping with that key, or a list with that position."""
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and 0 <= part < len(value)


def read(text: str, file: str) -> Source:
    """The text as values; never raises: what is wrong stands in `problems`; `data` is None when nothing can be used."""
    source = Source(file)
    if len(text) > MAX_TEXT:
        source.problems.append(Problem(file, 0, 0, "", f"is longer than {MAX_TEXT // 1024} KiB", "split the fleet"))
        return source
    yaml = YAML(typ="safe", pure=True)
    try:
        node = yaml.compose(text)
    except MarkedYAMLError as error:
        source.problems.append(syntax_problem(error, text, file))
    except RecursionError:
        source.problems.append(Problem(file, 0, 0, "", "is nested too deeply"))
    except (
        YAMLError,
        ValueError,
        AttributeError,
        LookupError,
        TypeError,
        AssertionError,
        NotImplementedError,
    ) as error:
        # The reader refuses control characters, and odd directives end in plain exceptions of the library.
        where = getattr(error, "position", None)
        line = text.count("\n", 0, where) + 1 if isinstance(where, int) else 0
        source.problems.append(
            Problem(file, line, 1 if line else 0, "", "is not readable as YAML: a character that YAML does not allow")
        )
    else:
        source.data = _Builder(source).value(node, (), ()) if node is not None else None
        if source.data is None and not source.problems:
            source.problems.append(Problem(file, 0, 0, "", "is empty", "the least is one entry under `backends:`"))
    return source


class _Builder:
    """Turns nodes into values; a mapping's first of two equal keys is kept, and the second is a problem."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.left = MAX_VALUES

    def value(self, node: Node, path: Path, inside: tuple[int, ...]) -> Any:
        self.left -= 1
        if self.left <= 0:
            if self.left == 0:
                self._say(node, path, f"makes more than {MAX_VALUES} values, aliases expanded", "an alias of aliases?")
            return None
        self.source.marks.setdefault(path, _place(node))
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if id(node) in inside:
            self._say(
                node, path, "contains itself through an alias", "remove the alias that points to what it stands in"
            )
            return None
        if len(inside) >= MAX_DEPTH:
            self._say(node, path, "is nested too deeply")
            return None
        inside = (*inside, id(node))
        if isinstance(node, SequenceNode):
            return [self.value(item, (*path, i), inside) for i, item in enumerate(node.value)]
        return self._mapping(node, path, inside) if isinstance(node, MappingNode) else None

    def _mapping(self, node: MappingNode, path: Path, inside: tuple[int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._say(key_node, path, "has a key that is not a word", "text like {{ }} needs quotes")
                continue
            key = str(key_node.value)
            if key_node.tag == f"{_TAG}merge" or (key == "<<" and key_node.style is None):
                self._merge(value_node, path, inside, merged)
                continue
            where = (*path, key)
            if key in found:
                first = self.source.marks[where][0]
                self._say(key_node, where, f"stands twice: first in line {first}", "remove one of the two")
                continue
            self.source.marks[where] = _place(key_node)
            found[key] = self.value(value_node, where, inside)
        return {**merged, **found}

    def _merge(self, node: Node, path: Path, inside: tuple[int, ...], merged: dict[str, Any]) -> None:
        parts = node.value if isinstance(node, SequenceNode) else [node]
        for part in parts:
            value = self.value(part, (*path, "<<"), inside)
            if isinstance(value, Mapping):
                for key, item in value.items():
                    merged.setdefault(key, item)
            else:
                self._say(part, path, "merges (`<<`) something that is not a mapping")

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        text = str(node.value)
        kind = str(node.tag).removeprefix(_TAG)
        try:
            match kind:
                case "str" | "timestamp" | "!":
                    return text
                case "null":
                    return _EXACT.get(text)
                case "bool":
                    return text.lower() in ("true", "yes", "on")
                case "int":
                    return _integer(text)
                case "float":
                    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:
            self._say(node, path, "is a number that can't be read", "put it in quotes if it is text")
            return None
        self._say(node, path, "has a tag (`!...`), and only plain values are read", "remove the tag")
        return None

    def _say(self, node: Node, path: Path, message: str, hint: str = "") -> None:
        line, column = _place(node)
        self.source.broken.add(path)
        self.source.problems.append(Problem(self.source.file, line, column, path_text(path), message, hint))


def _integer(text: str) -> int:
    plain = text.replace("_", "").lower().lstrip("+")
    if len(plain) > 40:
        raise ValueError("longer than any number here")
    return int(plain, 0) if plain.lstrip("-").startswith(("0x", "0o", "0b")) else int(plain, 10)


def _place(node: Node) -> tuple[int, int]:
    mark = node.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (0, 0)
