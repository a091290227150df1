"""The package's source, as the architecture tests read it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "gateway"

SMELL_LINES = 200
LIMIT_LINES = 400


@cache
def python_files() -> tuple[Path, ...]:
    """Every Python file of the package, in order."""
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def line_count(path: Path) -> int:
    return text_of(path).count("\n")


def shown(path: Path) -> str:
    """The path as a person writes it: from the root of the checkout."""
    return path.relative_to(ROOT).as_posix()
