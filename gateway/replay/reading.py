"""From a recording's lines back to looks at the queue: the values that `decide` and `pump` were called with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from gateway.core.plan import Plan
from gateway.core.request import Hit, Request
from gateway.core.snapshot import BackendView, Snapshot
from gateway.errors import ConfigError
from gateway.telemetry.turns import STANDING, VERSION, How

__all__ = ["Recorded", "files_of", "looks"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One look as it was recorded; `decisions` as records by field. `where`: file and line."""

    number: int
    where: str
    how: How
    plan: Plan
    snapshot: Snapshot
    requests: Sequence[Request]
    decisions: Sequence[Row]


def files_of(path: Path) -> list[Path]:
    """The files of a recording, oldest first: those that were put aside, and `path` itself."""
    aside, number = [], 1
    while (older := path.with_name(f"{path.name}.{number}")).exists():
        aside.append(older)
        number += 1
    return [*reversed(aside), path]


def looks(paths: Sequence[Path]) -> Iterator[Recorded | int]:
    """The looks in these files, in order; a number where so many lines could not be used, since those before are gone.

    Raises ConfigError for a file that is no recording, or can't be read.
    """
    reader, unused = _Reader(), 0
    for path in paths:
        try:
            with path.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    found = reader.take(line, f"{path}:{number}")
                    if found is None:
                        unused += 1
                        continue
                    if unused:
                        yield unused
                        unused = 0
                    yield found
        except OSError as error:
            raise ConfigError(f"can't read the recording {path}: {(error.strerror or str(error)).lower()}") from None
    if unused:
        yield unused


class _Reader:
    """Remembers what earlier lines said."""

    def __init__(self) -> None:
        self._next: int | None = None
        self._fields: Sequence[str] = ()
        self._hit: Sequence[str] = ()
        self._plan: Plan | None = None
        self._standing: dict[str, Row] = {}
        self._views: dict[str, BackendView] = {}
        self._requests: dict[str, Request] = {}

    def take(self, line: bytes, where: str) -> Recorded | None:
        """The look of a line; None where lines before it are missing on which it rests, or it was cut off."""
        row = _parsed(line, where)
        if row is None:
            return None
        try:
            return self._look(row, where)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"{where}: not a look at a queue as this version writes it ({_words(error)})") from None

    def _look(self, row: Row, where: str) -> Recorded | None:
        begins = row.get("begins")
        if begins is not None:
            if begins["version"] != VERSION:
                raise ConfigError(f"{where}: version {begins['version']} of the format; this program reads {VERSION}")
            self.__init__()  # type: ignore[misc]
            self._fields, self._hit = begins["moving"], begins["hit"]
        elif row["n"] != self._next:
            self._next = None
            return None
        self._next = row["n"] + 1
        if "plan" in row:
            self._plan = msgspec.convert(row["plan"], Plan)
        self._see(row)
        self._ask(row)
        assert self._plan is not None
        now = row["now"]
        decisions = [_decision(each, now) for each in row["decisions"]]
        requests = [self._requests[each["request"]] for each in decisions]
        snapshot = Snapshot(now, tuple(self._views.values()))
        return Recorded(row["n"], where, How(row["how"]), self._plan, snapshot, requests, decisions)

    def _ask(self, row: Row) -> None:
        for each in row.get("requests", ()):
            request = msgspec.convert({**each, "hits": self._hits(each["hits"])}, Request)
            self._requests[request.id] = request
        for name, changed in row.get("hits", {}).items():
            request = self._requests[name]
            gone = {backend for backend, hit in changed.items() if hit is None}
            held = {backend: hit for backend, hit in request.hits.items() if backend not in gone}
            told = {backend: hit for backend, hit in changed.items() if hit is not None}
            held.update(msgspec.convert(self._hits(told), dict[str, Hit]))
            self._requests[name] = replace(request, hits=held)

    def _hits(self, rows: Mapping[str, Sequence[Any]]) -> Row:
        """Hits by their fields' names; the last ones are left out where they are as usual."""
        return {backend: dict(zip(self._hit, values, strict=False)) for backend, values in rows.items()}

    def _see(self, row: Row) -> None:
        if "fleet" in row:
            self._standing = {each["backend"]["name"]: each for each in row["fleet"]}
            self._views = {}
        moved: Mapping[str, Sequence[Any]] = row.get("views", {})
        for name in self._standing:
            if name in moved:
                moving = dict(zip(self._fields, moved[name], strict=True))
                standing = {field: self._standing[name][field] for field in STANDING}
                self._views[name] = msgspec.convert({**standing, **moving}, BackendView)


def _parsed(line: bytes, where: str) -> Row | None:
    try:
        row = msgspec.json.decode(line)
    except msgspec.DecodeError:
        if line.endswith(b"\n"):
            raise ConfigError(f"{where}: not a line of a recording") from None
        return None  # the process ended while it wrote
    if not isinstance(row, dict) or not {"n", "how", "now", "decisions"} <= row.keys():
        raise ConfigError(
            f"{where}: not a line of a recording; `kvgate replay` reads what `telemetry.recording` writes"
        )
    return row


def _decision(row: Row | list[Any], now: float) -> Row:
    if isinstance(row, list):
        request, reason, roll = row
        return {"request": request, "now": now, "verdict": "wait", "reason": reason, "roll": roll}
    return {"now": now, **row}


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
