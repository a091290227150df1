"""`python -m tests`: its exit status is the truth, and its last line is pytest's summary."""

from __future__ import annotations

import subprocess
import sys

from tests.__main__ import together
from tests.architecture.source import ROOT


def checks(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests", "--only-tests", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_success_ends_with_the_summary() -> None:
    result = checks("tests/architecture/test_source.py", "-k", "vague or missing_docstring", "-p", "no:cacheprovider")
    assert result.returncode == 0, result.stdout
    assert result.stdout.splitlines()[-1].startswith("2 passed, ")


def test_failure_is_named_and_ends_with_the_summary() -> None:
    result = checks("tests/absent", "-p", "no:cacheprovider")
    assert result.returncode == 1
    *_, named, last = result.stdout.splitlines()
    assert named == "failed: pytest"
    assert last.startswith("no tests ran")


def test_two_runs_have_one_summary() -> None:
    runs = ["1 failed, 9000 passed, 2 skipped in 600.50s (0:10:00)", "160 passed, 1 warning in 200.25s (0:03:20)"]
    assert together(runs) == "1 failed, 9160 passed, 2 skipped, 1 warning in 800.75s"
