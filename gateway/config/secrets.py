"""Secrets: named in the file as `${env.NAME}` or `${file:/path}`, resolved at load, never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Never

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema

from gateway.config.sizes import Unreadable

__all__ = ["Resolved", "Secret", "SecretText", "resolve"]

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_ENV = re.compile(r"env\.([A-Za-z_][A-Za-z0-9_]*)")
_HINT = "write ${env.NAME} or ${file:/run/secrets/name}"
_FILE_LIMIT = 65536


class Resolved(str):
    """Text that came from the environment or from a file; `missing` when there was nothing to read."""

    missing: bool

    def __new__(cls, text: str, missing: bool = False) -> Resolved:
        """Text, and whether it is only a stand-in."""
        self = super().__new__(cls, text)
        self.missing = missing
        return self


class Secret:
    """A key. Its text leaves only through `reveal()`; repr, str, errors and pickles don't have it.

    `plain`: it stood in the file itself. `missing`: its source was empty (in a check only, never when serving).
    """

    __slots__ = ("__text", "missing", "plain")

    def __init__(self, text: str, *, plain: bool = False, missing: bool = False) -> None:
        self.__text = text
        self.plain = plain
        self.missing = missing

    def reveal(self) -> str:
        """The text itself."""
        return self.__text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.__text == self.__text

    def __hash__(self) -> int:
        return hash((Secret, self.__text))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> Never:
        raise TypeError("a secret is not pickled")


def resolve(text: str, env: Mapping[str, str], base: Path, *, required: bool) -> str:
    """The text with its references replaced; the text itself when it has none.

    Raises Unreadable for a reference that is malformed, and when `required` for one that leads nowhere. Relative file
    paths start at `base`.
    """
    if "${" not in text:
        return text
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        try:
            return _value(match[1], env, base)
        except LookupError as nothing:
            if required:
                raise Unreadable(str(nothing.args[0]), "set it before serving", absent=True) from None
            missing = True
            return ""

    done = _REFERENCE.sub(value, text)
    if "${" in _REFERENCE.sub("", text):
        raise Unreadable("has a reference that is not closed", _HINT)
    return Resolved(done, missing)


def _value(reference: str, env: Mapping[str, str], base: Path) -> str:
    if named := _ENV.fullmatch(reference):
        found = env.get(named[1], "")
        if not found:
            raise LookupError(f"needs the environment variable {named[1]}, which is not set")
        return found
    if not reference.startswith("file:"):
        raise Unreadable("has a reference of an unknown kind", _HINT)
    path = reference.removeprefix("file:")
    try:
        with (base / path).open(encoding="utf-8") as file:
            found = file.read(_FILE_LIMIT).strip()
    except (OSError, ValueError) as error:
        what = (getattr(error, "strerror", None) or "not readable as text").lower()
        raise LookupError(f"needs the file {path}: {what}") from None
    if not found:
        raise LookupError(f"needs the file {path}, which is empty")
    return found


def _secret(value: object) -> Secret:
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str):
        raise Unreadable("is a secret and must be text", _HINT)
    missing = isinstance(value, Resolved) and value.missing
    if not missing and (not value or not value.isascii() or not value.isprintable() or value != value.strip()):
        raise Unreadable("is a secret that no header can carry: printable ASCII without spaces around it", _HINT)
    return Secret(value, plain=not isinstance(value, Resolved), missing=missing)


SecretText = Annotated[
    Secret,
    BeforeValidator(_secret),
    PlainValidator(_secret),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["${env.SPARK_KEY}", "${file:/run/secrets/spark}"]}),
]
"""A field that holds a Secret."""
