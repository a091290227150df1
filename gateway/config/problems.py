"""What is wrong with a file: where, in which key, in one sentence, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from gateway.errors import ConfigError

__all__ = ["Path", "Problem", "Problems", "nearest", "path_text"]

Path = tuple[str | int, ...]
"""Keys and list positions from the top of the file to a value."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def path_text(path: Path) -> str:
    """A path as people write it: `backends[1].engine`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _WORD.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part[:40]!r}]"
    return text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is closest to this one, whatever its case, or None when none is close."""
    by_fold = {name.casefold(): name for name in known}
    close = get_close_matches(word.casefold()[:80], by_fold, n=1, cutoff=0.6)
    return by_fold[close[0]] if close else None


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or as a warning dubious. Lines and columns count from 1; 0 means the whole file."""

    file: str
    line: int
    column: int
    path: str
    message: str
    hint: str = ""

    @property
    def place(self) -> str:
        """`file:line:column`, as editors and terminals link it."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        return f"{self.place}: {path}{self.message}" + (f" ({self.hint})" if self.hint else "")


class Problems(ConfigError):
    """A file that can't be used: every problem that was found in it, in the order of its lines."""

    problems: tuple[Problem, ...]

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.line, p.column, p.path)))
        super().__init__("\n".join(map(str, self.problems)))
