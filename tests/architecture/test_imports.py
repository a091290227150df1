"""Who may import whom, and proof that the check would notice."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT

LINT_IMPORTS = Path(sysconfig.get_path("scripts")) / "lint-imports"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(LINT_IMPORTS), "--no-logo", "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package with its contracts, to plant a forbidden import in."""
    shutil.copytree(PACKAGE, tmp_path / "gateway", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("core/planted.py", "import time", "The core is pure"),
        ("core/planted.py", "import asyncio", "The core is pure"),
        ("core/planted.py", "from gateway import clock", "Rooms import only downwards"),
        ("local/planted.py", "import gateway.cli", "Rooms import only downwards"),
        ("local/planted.py", "import time", "One reader of real time"),
        ("local/planted.py", "import pydantic", "pydantic and YAML only in config"),
        ("core/planted.py", "import socket", "Only the shell does I/O"),
        ("wire/planted.py", "import asyncio", "Formats and engine adapters are sans-I/O"),
        ("engines/planted.py", "from gateway import clock", "Formats and engine adapters are sans-I/O"),
        ("errors.py", "import aiohttp", "aiohttp only where HTTP is served or probed"),
        ("errors.py", "import redis", "Redis only in its store"),
    ],
)
def test_a_planted_import_breaks_its_contract(copied: Path, file: str, line: str, contract: str) -> None:
    path = copied / "gateway" / file
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(f"{before}\n{line}\n", encoding="utf-8")
    result = lint(copied)
    assert result.returncode == 1, result.stdout
    broken = [row for row in result.stdout.splitlines() if row.endswith("BROKEN") or " BROKEN " in row]
    assert any(row.startswith(contract) for row in broken), result.stdout


@pytest.mark.parametrize(("room", "contract"), [("costs", "Costs do not"), ("filters", "Filters do not")])
def test_strategies_of_a_kind_do_not_know_each_other(copied: Path, room: str, contract: str) -> None:
    folder = copied / "gateway" / "core" / room
    one, other = sorted(path for path in folder.glob("*.py") if path.stem != "__init__")[:2]
    with one.open("a", encoding="utf-8") as file:
        file.write(f"\nimport gateway.core.{room}.{other.stem}\n")
    result = lint(copied)
    assert result.returncode == 1, result.stdout
    assert any(row.startswith(contract) and "BROKEN" in row for row in result.stdout.splitlines()), result.stdout


def test_a_room_that_no_contract_names_is_refused(copied: Path) -> None:
    room = copied / "gateway" / "attic"
    room.mkdir()
    (room / "__init__.py").write_text("", encoding="utf-8")
    result = lint(copied)
    assert result.returncode != 0
    assert "attic" in result.stdout
