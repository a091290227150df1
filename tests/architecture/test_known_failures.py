"""docs/known-failures.md is right: every failure has a test named by its id, and the table names their files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "known-failures.md"
IDS = (
    *("s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10"),
    *("e1", "e2", "e3", "e4", "e5", "e6"),
    *("c1", "c2", "c3", "c4", "c5", "c6"),
    *("t1", "t2", "t3", "t4", "t5", "o1", "o2", "o3", "o4", "o5"),
    *("x1", "x2", "x3", "x4", "x5", "x6", "x7"),
    *("n1", "n2", "n3", "r1", "r2", "r3", "b1", "b2", "b3", "a1", "a2", "a3", "a4"),
    *("p1", "p2", "p3", "p4", "p5", "p6", "p7"),
    *("k1", "k2", "k3", "k4", "k5", "k6"),
    *("f1", "f2", "f3", "f4", "f5", "f6", "f7", "h1", "h2", "h3", "h5", "h6", "h7", "h8"),
    "g3",
)
SHELL = ("http", "shell", "relay", "edge")
"""Tests over real sockets; those of single modules are not counted."""


def files_by_id() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for folder in SHELL:
        for path in sorted((ROOT / "tests" / folder).glob("test_*.py")):
            for ids in re.findall(r"def test_((?:[a-z]\d+_)+)", path.read_text()):
                for each in ids.strip("_").split("_"):
                    found.setdefault(each, set()).add(path.relative_to(ROOT).as_posix())
    return found


def rows() -> dict[str, set[str]]:
    lines = [line.split("|") for line in TABLE.read_text().splitlines() if re.match(r"\| [A-Z]\d+ ", line)]
    return {cells[1].strip().lower(): set(re.findall(r"`(tests/\S+)`", cells[3])) for cells in lines}


def test_the_table_has_every_id() -> None:
    assert tuple(rows()) == IDS


@pytest.mark.parametrize("each", IDS)
def test_each_has_a_test_of_its_name_and_the_table_tells_where(each: str) -> None:
    assert files_by_id()[each] == rows()[each]
