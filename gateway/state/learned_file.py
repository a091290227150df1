"""The file that keeps what was learned over a restart: a head, then one JSON record a line.

Lines, so that no single step of reading or writing holds the interpreter for long. Blocking: for a thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gateway.core.learned import AnswerLengths, CacheTrust, EventTokens, PromptTokens, Record, Speed

__all__ = ["VERSION", "Kept", "LearnedFile", "Unusable", "line_of"]

VERSION = 1
"""Of the format and of what the numbers mean: the bins of histograms, the levels of keys."""
_LARGEST = 64 * 1024**2


class Unusable(Exception):
    """The file is there and can't be used: damaged, or of another version. Says why, for a person."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a file held; `saved` in seconds since the Unix epoch."""

    saved: float
    records: list[Record]


class _Head(msgspec.Struct):
    kvgate_learned: int
    saved: float
    records: int


class _Line(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One record under the name of its kind."""

    lengths: AnswerLengths | None = None
    prompts: PromptTokens | None = None
    trust: CacheTrust | None = None
    speed: Speed | None = None
    events: EventTokens | None = None


_HEAD = msgspec.json.Decoder(_Head)
_LINE = msgspec.json.Decoder(_Line)


def line_of(record: Record) -> bytes:
    """One record as a line of the file."""
    if isinstance(record, AnswerLengths):
        line = _Line(lengths=record)
    elif isinstance(record, PromptTokens):
        line = _Line(prompts=record)
    elif isinstance(record, CacheTrust):
        line = _Line(trust=record)
    elif isinstance(record, Speed):
        line = _Line(speed=record)
    else:
        line = _Line(events=record)
    return msgspec.json.encode(line) + b"\n"


class LearnedFile:
    """`path`, replaced as a whole at each write and readable by its owner alone."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Kept | None:
        """What is kept; None when there is no file yet. Raises Unusable, and OSError when it can't be read."""
        try:
            with self.path.open("rb") as file:
                data = file.read(_LARGEST + 1)
        except FileNotFoundError:
            return None
        if len(data) > _LARGEST:
            raise Unusable("it is larger than any that was written")
        head, *lines = data.splitlines() or [b""]
        try:
            told = _HEAD.decode(head)
            if told.kvgate_learned != VERSION:
                raise Unusable(f"it is of version {told.kvgate_learned}, and this is {VERSION}")
            records = [record for line in lines if (record := _record(_LINE.decode(line))) is not None]
        except msgspec.MsgspecError as error:
            raise Unusable(f"it is damaged: {error}") from None
        if len(records) != told.records or len(lines) != told.records:
            raise Unusable(f"it is damaged: {told.records} records were written, {len(records)} are there")
        return Kept(told.saved, records)

    def write(self, lines: Iterable[bytes], saved: float) -> None:
        """Replace what is kept by these lines. Raises OSError; then what was kept before still is."""
        body = list(lines)
        head = msgspec.json.encode(_Head(VERSION, saved, len(body)))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f"{self.path.name}.new")
        fresh.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(head + b"\n")
            file.writelines(body)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)

    def set_aside(self) -> Path:
        """Move a file that can't be used out of the way; returns where it is now. Raises OSError."""
        aside = self.path.with_name(f"{self.path.name}.unusable")
        self.path.replace(aside)
        return aside


def _record(line: _Line) -> Record | None:
    return line.lengths or line.prompts or line.trust or line.speed or line.events
