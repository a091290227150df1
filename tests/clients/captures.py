"""Requests that real clients sent, one file a client, one request a line.

`line` is the request line, `headers` are in the order and case of the wire, `body` is the JSON; a part of it that an
earlier request of the file had too is written `{"$same": [n, member]}` or `{"$same": [n, member, index]}`. Those under
`recordings/clients` have the structure, the ids' shapes and the tools of real ones, and texts that are made up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.recordings import FOLDER

__all__ = ["RECORDED", "Captured", "captures", "load"]

RECORDED = FOLDER / "clients"


@dataclass(frozen=True, slots=True)
class Captured:
    """One request, whole. `what` is what it was for."""

    number: int
    what: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: Any = field(repr=False)

    @property
    def path(self) -> str:
        """Without the query."""
        return self.target.partition("?")[0]

    def data(self) -> bytes:
        """The body as bytes, as most clients write it."""
        if self.body is None:
            return b""
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()


def captures(folder: Path = RECORDED) -> list[Path]:
    """The files of a folder, one a client."""
    return sorted(folder.glob("*.jsonl"))


def load(file: Path) -> list[Captured]:
    """The requests of one file, in order."""
    return list(_whole(file))


def _whole(file: Path) -> Iterator[Captured]:
    earlier: list[Any] = []

    def filled(value: Any) -> Any:
        if isinstance(value, dict) and "$same" in value:
            number, member, *index = value["$same"]
            found = earlier[number][member]
            return found[index[0]] if index else found
        return value

    with file.open(encoding="utf-8") as lines:
        for line in lines:
            told = json.loads(line)
            body = told["body"]
            if isinstance(body, dict):
                body = {
                    name: [filled(each) for each in value] if isinstance(value, list) else filled(value)
                    for name, value in body.items()
                }
            earlier.append(body)
            method, target, _ = told["line"].split(" ")
            headers = tuple((name, value) for name, value in told["headers"])
            yield Captured(told["n"], told["what"], method, target, headers, body)
