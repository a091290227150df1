"""Recorded requests from a file: public traces, and this gateway's own journal.

| file | what tells it | times |
|---|---|---|
| Mooncake, JSON lines | `input_length`/`input_tokens`, `hash_ids` one for every 512 tokens | `timestamp`(`_ms`): ms |
| Azure LLM inference, CSV | `TIMESTAMP,ContextTokens,GeneratedTokens` | dates |
| BurstGPT, CSV | `Timestamp,Model,Request tokens,Response tokens` | seconds |
| decision journal, JSON lines | `request` and `settled` | `at`: seconds since the epoch |
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from gateway.errors import ConfigError

__all__ = ["TraceRow", "read_trace"]

Row = Mapping[str, Any]

_MILLISECONDS = ("timestamp_ms", "timestamp")
_PROMPT = ("input_tokens", "input_length", "contexttokens", "request tokens")
_OUTPUT = ("output_tokens", "output_length", "generatedtokens", "response tokens")
_SESSION = ("session id", "session_id", "session")
_FINER = re.compile(r"(\.\d{6})\d+")
"""Digits of a second beyond microseconds, which Azure's dates have."""


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One request: seconds from the first, tokens, and what is known of its text.

    `blocks`: an id for every 512 tokens of the prompt, equal where the text up to there is the same. `shared`: tokens
    at the start that other requests of the same `session`, or without one of the same client, sent as well; only where
    there are no blocks. `model`, `client` and `klass` are of a journal. `line` counts from 1.
    """

    at_s: float
    prompt: int
    output: int
    blocks: tuple[int, ...] = ()
    session: str = ""
    shared: int = 0
    model: str = ""
    client: str = ""
    klass: str = ""
    line: int = 0


def read_trace(path: Path) -> list[TraceRow]:
    """The requests of a trace in order of arrival, from 0 s on; those without an answer left out.

    Raises ConfigError that names file and line where one can't be read, or where there is no request at all.
    """
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = [row for row in _rows(path, lines) if row is not None]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can't be read: {getattr(error, 'strerror', None) or 'it is not text'}") from None
    if not rows:
        raise ConfigError(f"{path} holds no answered request")
    rows.sort(key=lambda row: row.at_s)
    first = rows[0].at_s
    return [_moved(row, first) for row in rows]


def _rows(path: Path, lines: Iterator[str]) -> Iterator[TraceRow | None]:
    if path.suffix == ".csv":
        reader = csv.DictReader(lines)
        for fields in reader:
            named = {(name or "").strip().lower(): value for name, value in fields.items()}
            yield _checked(path, reader.line_num, named, _of_csv)
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise _wrong(path, number, "is not JSON; JSON lines are wanted, or a file named .csv") from None
        if not isinstance(row, dict):
            raise _wrong(path, number, f"is a {type(row).__name__}, not an object with the fields of a request")
        yield _checked(path, number, row, _of_journal if "request" in row else _of_trace)


def _checked(path: Path, number: int, row: Row, read: Callable[[Row, int], TraceRow | None]) -> TraceRow | None:
    try:
        found = read(row, number)
    except KeyError as error:
        raise _wrong(path, number, f"has no {error.args[0]}") from None
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise _wrong(path, number, f"can't be read: {error}") from None
    if found is not None and (found.prompt < 1 or found.output < 1):
        return None
    return found


def _wrong(path: Path, number: int, what: str) -> ConfigError:
    return ConfigError(f"{path}:{number}: this line {what}")


def _of_trace(row: Row, number: int) -> TraceRow:
    blocks = tuple(int(block) for block in row.get("hash_ids") or ())
    at = float(_first(row, _MILLISECONDS)) / 1000.0
    return TraceRow(at, _tokens(row, _PROMPT), _tokens(row, _OUTPUT), blocks, _session(row), line=number)


def _of_csv(row: Row, number: int) -> TraceRow:
    prompt, output, session = _tokens(row, _PROMPT), _tokens(row, _OUTPUT), _session(row)
    if "timestamp_ms" in row:
        at = float(row["timestamp_ms"]) / 1000.0
    else:
        at = _moment(str(_first(row, ("timestamp",))))
    return TraceRow(at, prompt, output, session=session, shared=prompt if session else 0, line=number)


def _of_journal(row: Row, number: int) -> TraceRow | None:
    """A request that was not answered has no length of an answer, and says nothing."""
    request, settled = row["request"], row.get("settled") or {}
    if not settled.get("prompt_tokens") or not settled.get("completion_tokens"):
        return None
    prompt = int(settled["prompt_tokens"])
    session = str(request.get("session") or "")
    return TraceRow(
        float(row["at"]),
        prompt,
        int(settled["completion_tokens"]),
        session=session,
        shared=prompt if session else int(settled.get("cached_tokens") or 0),
        model=str(request.get("model") or ""),
        client=str(request.get("client") or ""),
        klass=str(request.get("class") or ""),
        line=number,
    )


def _first(row: Row, names: tuple[str, ...]) -> Any:
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise KeyError(" or ".join(names))


def _tokens(row: Row, names: tuple[str, ...]) -> int:
    value = _first(row, names)
    count = float(value)
    if count < 0 or count != int(count):
        raise ValueError(f"{value!r} is not a number of tokens")
    return int(count)


def _session(row: Row) -> str:
    return next((str(row[name]) for name in _SESSION if row.get(name)), "")


def _moment(text: str) -> float:
    """Seconds, of a number of them or of a date."""
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(_FINER.sub(r"\1", text.strip())).timestamp()


def _moved(row: TraceRow, first: float) -> TraceRow:
    return TraceRow(
        row.at_s - first, row.prompt, row.output, row.blocks, row.session, row.shared, row.model, row.client, row.klass,
        row.line,
    )  # fmt: skip
