"""Validation errors as sentences: which key, what is wrong with it, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gateway.config.document import Config
from gateway.config.problems import Path, Problem, nearest
from gateway.config.schema import spelt
from gateway.config.sizes import Unreadable
from gateway.config.source import Source, holds

__all__ = ["SECRET_KEYS", "problems_of"]

SECRET_KEYS = frozenset({"key"})
"""Keys whose values are never repeated in a message (`tls.key` is a path, and not repeated either)."""

_SHOWN_OF_AUTH = frozenset({"class", "data", "running", "context", "tokens", "requests", "kv_seconds"})
"""Under `auth` a key may stand where it doesn't belong, so only these values are repeated."""

_MISSING = "is missing"
_MEANT = re.compile(r"did you mean (\S+)\?")
_BOUNDS = {"greater_than": "over", "greater_than_equal": "at least", "less_than": "under", "less_than_equal": "at most"}


def problems_of(error: ValidationError, source: Source, data: Any) -> list[tuple[Path, Problem | None]]:
    """Each error with its path in the file; `data` is what was validated: the file's values, some of them replaced.

    A key that is missing because it is misspelt has no Problem of its own.
    """
    found: list[tuple[Path, Problem | None]] = []
    misspelt: set[Path] = set()
    for detail in error.errors(include_url=False, include_input=False):
        path = _path(detail["loc"], data, missing=detail["type"] == "missing")
        message, hint = _sentence(detail, path, source)
        if detail["type"] == "extra_forbidden" and (close := _MEANT.fullmatch(hint)):
            misspelt.add((*path[:-1], close[1]))
        found.append((path, source.problem(path, message, hint)))
    hidden = {path for path, problem in found if path in misspelt and problem and problem.message == _MISSING}
    return [(path, None if path in hidden else problem) for path, problem in found]


def _path(loc: tuple[int | str, ...], value: Any, *, missing: bool) -> Path:
    """The path in the file of pydantic's location, which also names branches of unions (`<keys>`) and types."""
    path: Path = ()
    for i, part in enumerate(loc):
        if holds(value, part):
            value, path = value[part], (*path, part)
        elif missing and i == len(loc) - 1:
            path = (*path, part)
    return path


def _sentence(detail: ErrorDetails, path: Path, source: Source) -> tuple[str, str]:
    kind, context = detail["type"], detail.get("ctx") or {}
    written = _written(path, source)
    value = source.get(path)
    if kind == "missing":
        return _MISSING, _meaning(path)
    if kind == "extra_forbidden":
        return _unknown(path, source)
    if kind == "value_error" and isinstance(reason := context.get("error"), Unreadable):
        return f"{written}{reason}", _hint(reason.hint, value)
    if value is None and path not in source.marks:
        return _MISSING, _meaning(path)
    if value is None:
        return "is empty", "leave the key out to get its default"
    if kind == "literal_error" and path == ("auth",):
        return "is neither a mapping nor the word none", "write {keys: [...]}, or none"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tag = str(context["discriminator"]).strip("'")
        return _tag(path, tag, str(context.get("expected_tags", "")), source)
    if kind == "literal_error":
        known = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
        close = nearest(value, known) if isinstance(value, str) else None
        one_of = "write" if len(known) == 1 else "one of"
        return f"{written}is not a choice here", f"did you mean {close}?" if close else f"{one_of} {', '.join(known)}"
    if kind in _BOUNDS:
        bound = next(v for k, v in context.items() if k in ("gt", "ge", "lt", "le"))
        unit = next((node["x-unit"] for node in _at(path) if "x-unit" in node), None)
        return f"{written}must be {_BOUNDS[kind]} {spelt(bound, unit) if bound else 0}", ""
    if kind in ("tuple_type", "list_type"):
        return f"{written}must be a list", "begin each entry with `- `"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"{written}must be a mapping, that is `key: value` pairs", ""
    if kind == "string_type":
        return f"{written}must be text", "" if isinstance(value, dict | list) else "put it in quotes"
    if kind == "string_pattern_mismatch":
        return f"{written}must be a name without spaces", ""
    if kind in ("string_too_short", "too_short"):
        return "is empty", ""
    if kind == "string_too_long":
        return f"is longer than {context.get('max_length')} characters", ""
    if kind.startswith("bool"):
        return f"{written}must be true or false", ""
    if kind.startswith("path"):
        return f"{written}must be a path", ""
    return f"{written}can't be used: {detail['msg']}", ""


def _tag(path: Path, tag: str, expected: str, source: Source) -> tuple[str, str]:
    """A mapping whose kind, told by the key `tag`, is missing or not known."""
    word = source.get((*path, tag))
    known = [name.strip().strip("'") for name in expected.split(",") if name.strip()]
    if word is None or not known:
        return f"has no `{tag}`", "which tells what it is"
    close = nearest(str(word), known)
    return (
        f"{tag} `{str(word)[:60]}` is not a choice here",
        f"did you mean {close}?" if close else f"one of {', '.join(known)}",
    )


def _hint(hint: str, value: Any) -> str:
    """The hint, with the nearest word first when it lists words."""
    if hint.startswith("one of ") and isinstance(value, str):
        close = nearest(value, hint.removeprefix("one of ").split(", "))
        return f"did you mean {close}?" if close else hint
    return hint


def _written(path: Path, source: Source) -> str:
    """The value as it stands in the file, never what a reference in it led to, and never a secret."""
    value = source.get(path)
    if value is None or isinstance(value, dict | list) or (path and path[-1] in SECRET_KEYS):
        return ""
    if path and path[0] == "auth" and path[-1] not in _SHOWN_OF_AUTH:
        return ""
    text = " ".join(str(value).split())
    if "://" in text or path[-1:] == ("url",):  # who logs in there, and what follows the path, may be secrets
        text = re.sub(r"[?#].*", lambda mark: f"{mark[0][0]}***", re.sub(r"//.*@", "//***@", text))
    return f"`{text[:59]}…` " if len(text) > 60 else f"`{text}` "


def _unknown(path: Path, source: Source) -> tuple[str, str]:
    word = str(path[-1]) if path else ""
    here = source.get(path[:-1])
    every = {key for node in _at(path[:-1]) for key in node.get("properties", {})}
    known = sorted(every - set(here if isinstance(here, dict) else ()))
    if close := nearest(word, known) or nearest(word, every):
        return "there is no such key here", f"did you mean {close}?" if close in known else f"{close} is there already"
    if len(path) == 1 and (elsewhere := [where for where, name in _all_keys() if name == word]):
        return "there is no such key here", f"it belongs under {elsewhere[0]}"
    if word in Config.model_fields:
        return "there is no such key here", "it belongs at the top of the file"
    return "there is no such key here", f"known here: {', '.join(known or sorted(every))}" if every else ""


@cache
def _schema() -> Mapping[str, Any]:
    return Config.model_json_schema()


def _branches(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A schema node and what it may stand for: references followed, unions opened."""
    if "$ref" in node:
        yield from _branches(_schema()["$defs"][node["$ref"].rsplit("/", 1)[1]])
    for branch in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _branches(branch)
    yield node


def _at(path: Path) -> list[Mapping[str, Any]]:
    nodes = list(_branches(_schema()))
    for part in path:
        inner: list[Mapping[str, Any]] = []
        for node in nodes:
            if isinstance(part, int):
                below = node.get("items")
            else:
                named = node.get("properties", {}).get(part)
                below = (
                    named
                    or node.get("additionalProperties")
                    or next(iter(node.get("patternProperties", {}).values()), None)
                )
            if isinstance(below, Mapping):
                inner += _branches(below)
        nodes = inner
    return nodes


def _meaning(path: Path) -> str:
    """What a key is for, from its schema text."""
    if not path or isinstance(path[-1], int):
        return ""
    for node in _at(path[:-1]):
        text = node.get("properties", {}).get(path[-1], {}).get("description", "")
        if text:
            return str(text[0].lower() + text[1:].rstrip(".")) if not text[1].isupper() else str(text.rstrip("."))
    return ""


@cache
def _all_keys() -> tuple[tuple[str, str], ...]:
    """(where, key) of every key two levels deep, to point a misplaced one to its section."""
    found: list[tuple[str, str]] = []
    for section in _schema()["properties"]:
        for node in _at((section,)):
            found += [(f"{section}:", key) for key in node.get("properties", {})]
            if isinstance(node.get("items"), Mapping):
                found += [
                    (f"an entry of {section}:", k) for b in _branches(node["items"]) for k in b.get("properties", {})
                ]
    return tuple(found)
